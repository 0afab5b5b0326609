//! The command line. What is not given there comes from the environment, then from the stack file.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use bindery_sandbox::package::ComponentFile;
use bindery_stack::file::is_name;
use bindery_stack::settings::{PARALLEL, TIMEOUT};

/// Grants roles from a stack file: on migration jobs, edge cache origins and backend buckets.
///
/// A setting comes from its flag, else from its environment variable, else from the stack file where `--help` says so.
#[derive(Debug, Parser)]
#[command(name = "bindery", version, about, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How it is told.
    #[command(flatten)]
    pub output: Output,
}

impl Arguments {
    /// Reads the command line, and ends the program where it is wrong. A variable that is set to nothing is not set.
    pub fn read() -> Self {
        let matches = without_empty(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

fn without_empty(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &Arg| {
        arg.get_env()
            .and_then(env::var_os)
            .is_some_and(|value| value.is_empty())
    };
    command
        .mut_args(|arg| if is_empty(&arg) { arg.env(None::<&str>) } else { arg })
        .mut_subcommands(without_empty)
}

/// How a command tells what it does.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print one JSON document instead of text. Nothing is asked.
    #[arg(long, global = true, env = "BINDERY_JSON", value_parser = BoolishValueParser::new())]
    pub json: bool,
    /// Print warnings and errors only. Nothing is asked.
    #[arg(long, short, global = true, env = "BINDERY_QUIET", value_parser = BoolishValueParser::new())]
    pub quiet: bool,
    /// When to use colours. `auto` honours NO_COLOR and CLICOLOR_FORCE.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        env = "BINDERY_COLOR"
    )]
    pub color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make what the stack file declares so.
    Up(Run),
    /// Show what `up` would do, and touch nothing.
    Preview(Preview),
    /// Read what exists, and note in the state what has changed.
    Refresh(Run),
    /// Remove everything that the stack has made.
    Destroy(Run),
    /// Print the YAML that adopts what exists already.
    Import(Import),
    /// Look at what a stack is known to have made.
    State {
        /// What to look at.
        #[command(subcommand)]
        command: State,
    },
    /// Show what a provider component is, without running it.
    Inspect {
        /// The component: FILE, FILE@sha256:DIGEST. The built-in one where none is named.
        component: Option<ComponentFile>,
    },
    /// Print a provider component's package schema, from which Pulumi makes SDKs.
    Schema {
        /// The component: FILE, FILE@sha256:DIGEST. The built-in one where none is named.
        component: Option<ComponentFile>,
    },
    /// Serve the three services' policy endpoints on this machine.
    Emulator(EmulatorOptions),
    /// Serve many tenants to Pulumi engines that attach, each on a port of its own.
    Serve {
        /// Which tenants there are, and what each may do.
        #[arg(long, value_name = "FILE", env = "BINDERY_TENANTS")]
        tenants: PathBuf,
    },
    /// Print a script that completes this command line.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

impl Command {
    /// The words that it is called by.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Up(_) => "up",
            Self::Preview(_) => "preview",
            Self::Refresh(_) => "refresh",
            Self::Destroy(_) => "destroy",
            Self::Import(_) => "import",
            Self::State {
                command: State::Show { .. },
            } => "state show",
            Self::State {
                command: State::Export { .. },
            } => "state export",
            Self::Inspect { .. } => "inspect",
            Self::Schema { .. } => "schema",
            Self::Emulator(_) => "emulator",
            Self::Serve { .. } => "serve",
            Self::Completions { .. } => "completions",
        }
    }
}

/// What to look at of a state.
#[derive(Debug, Subcommand)]
pub enum State {
    /// List the stack's resources, or show one of them whole.
    Show {
        /// Where the stack is.
        #[command(flatten)]
        place: Place,
        /// The resource, by its name or URN.
        resource: Option<String>,
    },
    /// Print the state as a document that `pulumi stack import` takes.
    Export {
        /// Where the stack is.
        #[command(flatten)]
        place: Place,
    },
}

/// Which stack, and where its state is.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The stack file.
    pub file: PathBuf,
    /// Which stack of it.
    #[command(flatten)]
    pub of: Stack,
}

/// Which stack of a file, its provider, and where its state is.
#[derive(Debug, Clone, Args)]
pub struct Stack {
    /// The stack: each has a state of its own. [stack file: bindery.stack] [default: dev]
    #[arg(long, short, env = "BINDERY_STACK", value_parser = stack_name)]
    pub stack: Option<String>,
    /// Where the state is kept. [default: .bindery beside the stack file]
    #[arg(long, value_name = "DIR", env = "BINDERY_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
    /// Work on emulated services in this process, whose policies are kept beside a state of their own.
    #[arg(long, env = "BINDERY_EMULATE", value_parser = BoolishValueParser::new())]
    pub emulate: bool,
    /// Use the provider in this file instead of the built-in one; what it may call stands in the .toml file beside it.
    #[arg(long, value_name = "FILE[@sha256:DIGEST]", env = "BINDERY_COMPONENT")]
    pub component: Option<ComponentFile>,
}

/// How the provider is configured, and what it calls.
#[derive(Debug, Clone, Args)]
pub struct Services {
    /// Set a configuration key, of the stack file or of the provider (`bindery:KEY`). May be repeated. [stack file: config]
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = key_value)]
    pub config: Vec<(String, String)>,
    /// Call a service at another origin, such as `compute=http://127.0.0.1:8080`. May be repeated. No credential is sent, unless BINDERY_CREDENTIAL_ORIGINS lists the origin.
    #[arg(long, value_name = "SERVICE=ORIGIN", value_parser = key_value)]
    pub endpoint: Vec<(String, String)>,
    /// How many seconds one operation may take, with all its attempts. [stack file: bindery.timeout] [default: 120]
    #[arg(long, value_name = "SECONDS", env = "BINDERY_TIMEOUT", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// What may be changed, and how much of it is shown.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// Change this resource only, by its name or URN. May be repeated.
    #[arg(long, short, value_name = "NAME")]
    pub target: Vec<String>,
    /// Show every property and whole lists.
    #[arg(long, env = "BINDERY_DIFF", value_parser = BoolishValueParser::new())]
    pub diff: bool,
}

/// `preview`.
#[derive(Debug, Clone, Args)]
pub struct Preview {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub services: Services,
    #[command(flatten)]
    pub selection: Selection,
}

/// A command that changes something.
#[derive(Debug, Clone, Args)]
pub struct Run {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub services: Services,
    #[command(flatten)]
    pub selection: Selection,
    /// Do not ask before anything is changed.
    #[arg(long, short, env = "BINDERY_YES", value_parser = BoolishValueParser::new())]
    pub yes: bool,
    /// How many resources are worked on at the same time. [stack file: bindery.parallel] [default: 256]
    #[arg(long, short, env = "BINDERY_PARALLEL", value_parser = clap::value_parser!(u16).range(i64::from(*PARALLEL.start())..=i64::from(*PARALLEL.end())))]
    pub parallel: Option<u16>,
}

/// `import`.
#[derive(Debug, Clone, Args)]
pub struct Import {
    /// The resource type: its token, or the end of it that no other has.
    #[arg(value_name = "TYPE")]
    pub token: String,
    /// The name that it gets in the stack file.
    pub name: String,
    /// What exists: its id, or what the provider takes for one, such as `TARGET ROLE IDENTITY [TITLE]`.
    pub id: String,
    /// The stack file, for the configuration that it sets.
    #[arg(long, short)]
    pub file: Option<PathBuf>,
    /// How the provider is configured, and what it calls.
    #[command(flatten)]
    pub services: Services,
    /// Which stack of the file has the emulated services that are read, and which provider reads them.
    #[command(flatten)]
    pub of: Stack,
}

/// How the emulator is served.
#[derive(Debug, Clone, Args)]
pub struct EmulatorOptions {
    /// The port on this machine; 0 for any that is free.
    #[arg(long, default_value_t = 8080, env = "BINDERY_EMULATOR_PORT")]
    pub port: u16,
    /// Where the policies are kept. Without it, in memory.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
        _ => Err("expected `KEY=VALUE`".to_string()),
    }
}

/// A stack's name becomes part of URNs and of file names.
fn stack_name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_string())
    } else {
        Err("expected letters, digits, `-`, `_` and `.`".to_string())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if TIMEOUT.contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "expected seconds, from {} to {}",
            TIMEOUT.start(),
            TIMEOUT.end()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
