//! `models/*.model` but `classes.model`: the machines, and what each class costs on them.

use crate::classes::Classes;
use crate::error::{Error, read};
use crate::rows::Target;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What every model says of its machine, in the order of the generated row.
const FACTS: [&str; 11] = [
    "registers",
    "register_unit",
    "warps",
    "blocks",
    "shared_kib",
    "shared_reserved",
    "shared_unit",
    "partitions",
    "cached",
    "second_level",
    "memory",
];

/// `BASE+STEPn`: a number that may grow with a count.
#[derive(Clone, Copy)]
struct Linear {
    base: u16,
    step: u16,
}

#[derive(Clone)]
struct Cost {
    unit: usize,
    latency: Linear,
    interval: Linear,
    issue: Linear,
}

#[derive(Clone)]
struct Model {
    name: String,
    facts: BTreeMap<String, u32>,
    costs: Vec<Option<Cost>>,
}

/// All models, and the model of each target.
pub struct Models {
    models: Vec<Model>,
    of_target: Vec<Option<usize>>,
}

impl Models {
    /// Reads the files of `folder`, each after those whose models its own are like.
    pub fn read(folder: &Path, targets: &[Target], classes: &Classes) -> Result<Models, Error> {
        let entries =
            folder.read_dir().map_err(|error| Error::new(folder.display().to_string(), 0, error.to_string()))?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|end| end == "model") && !path.ends_with("classes.model"))
            .collect();
        files.sort();
        let mut models = Models { models: Vec::new(), of_target: vec![None; targets.len()] };
        while !files.is_empty() {
            let mut ready = None;
            for (index, file) in files.iter().enumerate() {
                if models.knows_bases(&read(file)?) {
                    ready = Some(index);
                    break;
                }
            }
            // Where none is ready, the first one's line `like` is the error.
            models.file(&files.remove(ready.unwrap_or(0)), targets, classes)?;
        }
        let missing = targets.iter().zip(&models.of_target).find(|(_, model)| model.is_none());
        if let Some((target, _)) = missing {
            return Err(Error::new(folder.display().to_string(), 0, format!("no model for {}", target.name)));
        }
        Ok(models)
    }

    /// Whether every model that `text` names as a base is known, or stands in `text` itself.
    fn knows_bases(&self, text: &str) -> bool {
        let lines = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines().all(|words| match words[..] {
            ["model", _, "like", base] => {
                self.models.iter().any(|model| model.name == base)
                    || lines().any(|other| other.starts_with(&["model", base]))
            }
            _ => true,
        })
    }

    fn file(&mut self, path: &Path, targets: &[Target], classes: &Classes) -> Result<(), Error> {
        let first = self.models.len();
        let mut sourced = false;
        for (index, line) in read(path)?.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            let error = |message| Error::new(path.display().to_string(), index + 1, message);
            match words[..] {
                [] => {}
                ["source", _, ..] => sourced = true,
                _ if !sourced && words[0] != "model" && words[0] != "targets" => {
                    return Err(error("a number without a `source` line before it".to_owned()));
                }
                _ => self.line(&words, first, targets, classes).map_err(error)?,
            }
        }
        for model in &self.models[first..] {
            let fact = FACTS.iter().find(|name| !model.facts.contains_key(**name)).copied();
            let class = classes.classes.iter().zip(&model.costs).find(|(_, cost)| cost.is_none());
            if let Some(name) = fact.or(class.map(|(class, _)| class.name.as_str())) {
                return Err(Error::new(path.display().to_string(), 0, format!("model {} lacks `{name}`", model.name)));
            }
        }
        Ok(())
    }

    fn line(&mut self, words: &[&str], first: usize, targets: &[Target], classes: &Classes) -> Result<(), String> {
        if let ["model", name, rest @ ..] = words {
            let mut model =
                Model { name: (*name).to_owned(), facts: BTreeMap::new(), costs: vec![None; classes.classes.len()] };
            match rest {
                [] => {}
                ["like", base] => {
                    let base = self.models.iter().find(|model| model.name == *base);
                    let base =
                        base.ok_or_else(|| format!("no model `{}` in this file or in one before it", rest[1]))?;
                    model = Model { name: (*name).to_owned(), ..base.clone() };
                }
                _ => return Err("expected: model NAME [like NAME]".to_owned()),
            }
            self.models.push(model);
            return Ok(());
        }
        let at = self.models.len().checked_sub(1).filter(|&at| at >= first).ok_or("no `model` line before this")?;
        match words {
            ["targets", names @ ..] => {
                for name in names {
                    let number = targets.iter().position(|target| target.name == *name);
                    let number = number.ok_or_else(|| format!("no target `{name}`"))?;
                    if self.of_target[number].replace(at).is_some() {
                        return Err(format!("{name} has two models"));
                    }
                }
            }
            [name, value] if FACTS.contains(name) => {
                let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
                self.models[at].facts.insert((*name).to_owned(), value);
            }
            [name, unit, latency, interval, issue @ ..] if issue.len() <= 1 => {
                let class = classes.classes.iter().position(|class| class.name == *name);
                let class = class.ok_or_else(|| format!("no class `{name}`"))?;
                let unit = classes.units.iter().position(|other| other.name == *unit);
                self.models[at].costs[class] = Some(Cost {
                    unit: unit.ok_or_else(|| format!("no unit `{}`", words[1]))?,
                    latency: linear(latency)?,
                    interval: linear(interval)?,
                    issue: linear(issue.first().copied().unwrap_or("1"))?,
                });
            }
            _ => return Err("expected: CLASS UNIT LATENCY INTERVAL [ISSUE]".to_owned()),
        }
        Ok(())
    }

    /// Writes `MODELS` and `TARGET_MODELS`.
    pub fn write(&self, out: &mut String) {
        let _ = writeln!(out, "pub(crate) static MODELS: &[ModelRow] = &[");
        for model in &self.models {
            let _ = write!(out, "ModelRow {{ name: {:?}, ", model.name);
            for name in FACTS {
                let _ = write!(out, "{name}: {}, ", model.facts.get(name).copied().unwrap_or(0));
            }
            let _ = writeln!(out, "costs: &[");
            for cost in model.costs.iter().flatten() {
                let pair = |linear: Linear| format!("({}, {})", linear.base, linear.step);
                let (latency, interval, issue) = (pair(cost.latency), pair(cost.interval), pair(cost.issue));
                let unit = cost.unit;
                let _ = writeln!(
                    out,
                    "CostRow {{ unit: {unit}, latency: {latency}, interval: {interval}, issue: {issue} }},"
                );
            }
            let _ = writeln!(out, "] }},");
        }
        let of: Vec<usize> = self.of_target.iter().map(|model| model.unwrap_or(0)).collect();
        let _ = writeln!(out, "];\npub(crate) static TARGET_MODELS: [u8; {}] = {of:?};", of.len());
    }
}

/// `12`, `3n` or `12+3n`.
fn linear(text: &str) -> Result<Linear, String> {
    let number = |text: &str| text.parse::<u16>().map_err(|_| format!("`{text}` is no number of cycles"));
    let Some(rest) = text.strip_suffix('n') else { return Ok(Linear { base: number(text)?, step: 0 }) };
    let (base, step) = rest.split_once('+').unwrap_or(("0", rest));
    Ok(Linear { base: number(base)?, step: number(step)? })
}
