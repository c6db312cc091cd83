//! Guesses where a pattern that was not found was meant to match.

/// How far from the start of the search to look, in bytes.
const REACH: usize = 4096;
/// Edits a guess may take; a worse one helps nobody.
const WORST: f64 = 50.0;
/// What a line's distance from the start of the search counts, in edits.
const LINE_COST: f64 = 0.01;

/// The offset in `text` whose line is most like `example`, if any is at all like it. The very start of
/// the search is not a guess: it is shown anyway.
pub(crate) fn find(example: &[u8], text: &[u8]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    let mut lines = 0;
    let mut row = Vec::with_capacity(example.len() + 1);
    for (offset, byte) in text.iter().take(REACH).enumerate() {
        if *byte == b'\n' {
            lines += 1;
        }
        // Patterns do not begin with blanks.
        if matches!(byte, b' ' | b'\t') {
            continue;
        }
        let line = &text[offset..(offset + example.len()).min(text.len())];
        let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
        let penalty = f64::from(lines) * LINE_COST;
        let limit = best.map_or(WORST, |(_, quality)| quality - penalty);
        let quality = distance(line, example, limit, &mut row) + penalty;
        if best.is_none_or(|(_, found)| quality < found) {
            best = Some((offset, quality));
        }
    }
    best.filter(|(offset, quality)| *offset > 0 && *quality < WORST).map(|(offset, _)| offset)
}

/// Insertions, deletions and replacements that turn one text into the other; some number not below
/// `limit` when there are at least that many.
fn distance(from: &[u8], to: &[u8], limit: f64, row: &mut Vec<u32>) -> f64 {
    let at_least = from.len().abs_diff(to.len()) as f64;
    if at_least >= limit {
        return at_least;
    }
    row.clear();
    row.extend(0..=to.len() as u32);
    for (line, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line as u32 + 1;
        let mut lowest = row[0];
        for (column, b) in to.iter().enumerate() {
            let replaced = diagonal + u32::from(a != b);
            diagonal = row[column + 1];
            let value = replaced.min(diagonal.min(row[column]) + 1);
            row[column + 1] = value;
            lowest = lowest.min(value);
        }
        if f64::from(lowest) >= limit {
            return f64::from(lowest);
        }
    }
    f64::from(row[to.len()])
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_most_similar_line_is_found() {
        let text = b"alpha\n  add.s32 r1, r2;\nomega\n";
        assert_eq!(find(b"add.s32 r1, r3;", text), Some(8));
    }

    #[test]
    fn the_start_and_the_hopeless_are_not_guesses() {
        assert_eq!(find(b"alphb", b"alpha\n"), None);
        assert_eq!(find(&[b'x'; 100], b"alpha\nbeta\n"), None);
    }
}
