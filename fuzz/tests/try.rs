#![cfg(test)]
use ptxc_fuzz::*;
#[test]
fn try_seeds() {
    let from: u64 = std::env::var("FROM").map_or(0, |t| t.parse().unwrap());
    let count: u64 = std::env::var("COUNT").map_or(100, |t| t.parse().unwrap());
    let (mut agree, mut long) = (0, 0);
    let mut shown = 0;
    for seed in from..from + count {
        let program = generate(seed, &Features::for_seed(seed));
        match check(&program, &steps::lists(seed)) {
            Verdict::Agree => agree += 1,
            Verdict::TooLong => long += 1,
            other => {
                println!("seed {seed} {}: {other:?}", program.target);
                shown += 1;
                if shown > 30 { break; }
            }
        }
    }
    println!("{agree} agree, {long} too long, {shown} wrong");
}
