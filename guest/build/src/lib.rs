//! Builds a guest crate into a component, from the build script of the crate that hands out its bytes.
//!
//! The component gets its WIT as a custom section, because componentizing drops all docs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use wasm_encoder::{ComponentSection, CustomSection};
use wit_parser::Resolve;

/// The custom section that holds a component's WIT: one for each package, encoded.
pub const WIT_SECTION: &str = "bindery:wit";

const TARGET: &str = "wasm32-wasip2";

/// A guest crate of this workspace, and what it is built with.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    /// The package's name.
    pub package: &'a str,
    /// Its features.
    pub features: &'a [&'a str],
    /// The folder of its WIT package, from the workspace's root.
    pub wit: &'a str,
    /// The folders whose change makes it another component, from the workspace's root.
    pub sources: &'a [&'a str],
}

/// Builds guests one after the other, and writes each as `NAME.wasm` into the build script's `OUT_DIR`. What fails first is
/// said as the build's own error: that the target is not installed, and how to install it, or what the compiler found.
pub fn build(guests: &[(&str, Guest<'_>)]) {
    if let Err(error) = guests.iter().try_for_each(|(name, guest)| build_one(*guest, name)) {
        for line in format!("{error:#}").lines() {
            println!("cargo::error={line}");
        }
    }
}

fn build_one(guest: Guest<'_>, name: &str) -> Result<()> {
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    let root = workspace_root()?;
    for source in guest.sources.iter().chain(&[guest.wit, "Cargo.lock"]) {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    ensure_target()?;
    let target_dir = target_dir(&out_dir)?;
    compile(&root, guest, &target_dir)?;
    let file = format!("{}.wasm", guest.package.replace('-', "_"));
    let built = target_dir.join(TARGET).join("guest").join(file);
    let mut component = fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    append_wit(&mut component, &root.join(guest.wit))?;
    fs::write(out_dir.join(format!("{name}.wasm")), component)?;
    Ok(())
}

fn workspace_root() -> Result<PathBuf> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest.ancestors().find(|folder| folder.join("Cargo.lock").exists());
    root.map(Path::to_path_buf).context("no Cargo.lock above the crate")
}

/// A folder beside the outer build's: in the same one, the inner cargo would wait for the outer for ever.
fn target_dir(out_dir: &Path) -> Result<PathBuf> {
    // TARGET_DIR/PROFILE/build/PACKAGE-HASH/out
    let outer = out_dir
        .ancestors()
        .nth(4)
        .context("OUT_DIR is not where cargo puts it")?;
    Ok(outer.join("guest"))
}

fn ensure_target() -> Result<()> {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    ensure!(
        sysroot.join("lib/rustlib").join(TARGET).exists(),
        "the components are built for {TARGET}, which is not installed: run `rustup target add {TARGET}`"
    );
    Ok(())
}

fn compile(root: &Path, guest: Guest<'_>, target_dir: &Path) -> Result<()> {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".to_string()));
    cargo
        .current_dir(root)
        .args(["rustc", "--locked", "--quiet", "--profile", "guest", "--target", TARGET])
        .args(["--package", guest.package, "--lib", "--crate-type", "cdylib"])
        .arg("--target-dir")
        .arg(target_dir);
    if !guest.features.is_empty() {
        cargo.arg("--features").arg(guest.features.join(","));
    }
    // What the outer cargo set for itself: a wrapper such as clippy's, flags and profile of another target.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let is_outer = text.starts_with("RUSTC")
            || text.starts_with("CARGO_PROFILE_")
            || matches!(
                text.as_ref(),
                "CARGO_ENCODED_RUSTFLAGS"
                    | "RUSTFLAGS"
                    | "CARGO_TARGET_DIR"
                    | "CARGO_BUILD_TARGET"
                    | "CARGO_MAKEFLAGS"
                    | "MAKEFLAGS"
            );
        if is_outer {
            cargo.env_remove(&name);
        }
    }
    let output = cargo.output().context("starting cargo")?;
    if !output.status.success() {
        bail!(
            "building {} failed:\n{}",
            guest.package,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Appends the WIT packages of a folder to a component, so that the docs can be read from it.
///
/// # Errors
/// When the WIT does not parse.
pub fn append_wit(component: &mut Vec<u8>, wit: &Path) -> Result<()> {
    let mut resolve = Resolve::default();
    resolve
        .push_dir(wit)
        .with_context(|| format!("parsing {}", wit.display()))?;
    // Encoding a package keeps its own docs only, so each package has a section of its own.
    let packages: Vec<_> = resolve.packages.iter().map(|(id, _)| id).collect();
    for package in packages {
        let data = wit_component::encode(&resolve, package)?;
        CustomSection {
            name: WIT_SECTION.into(),
            data: data.into(),
        }
        .append_to_component(component);
    }
    Ok(())
}
