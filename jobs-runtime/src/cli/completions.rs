//! `jobs completions`: what a shell's Tab key offers.

use clap::Args;
use clap_complete::Shell;

use super::Context;
use super::exit::Result;
use super::output::print;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Install: `jobs completions bash > ~/.local/share/bash-completion/completions/jobs`, \
                        `jobs completions zsh > \"${fpath[1]}/_jobs\"`, \
                        `jobs completions fish > ~/.config/fish/completions/jobs.fish`."
)]
pub struct Options {
    /// The shell.
    shell: Shell,
}

impl Options {
    pub(super) fn run(&self, cx: &Context) -> Result<()> {
        let mut root = cx.root.clone();
        let program = std::env::args_os().next().map(std::path::PathBuf::from);
        let name = program.as_deref().and_then(|path| path.file_stem()?.to_str());
        let name = name.unwrap_or("jobs").to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut root, name, &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
