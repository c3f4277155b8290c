use std::path::{Path, PathBuf};
#[derive(Debug)]
#[allow(dead_code)]
pub struct Options {
    pub names: Vec<String>,
    pub output: PathBuf,
    pub quick: bool,
    pub pairs: u32,
    pub module: Option<PathBuf>,
}
pub fn list() -> Vec<(&'static str, &'static str)> {
    vec![]
}
pub fn run(_: &Options) -> anyhow::Result<()> {
    Ok(())
}
pub fn report(_: &Path) -> anyhow::Result<()> {
    Ok(())
}
