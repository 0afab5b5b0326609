//! A component with what its operator wrote down for it: the file beside it.

use std::fs;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::component::{Component, Digest, LoadError};
use crate::manifest::{Manifest, ManifestError};
use crate::runtime::Runtime;

/// A component's file, and the digest that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentFile {
    /// The file.
    pub path: PathBuf,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: Option<String>,
}

/// A component, and what it may do.
#[derive(Debug)]
pub struct Package {
    /// The component.
    pub component: Component,
    /// Its origins, their credentials, and its defaults.
    pub manifest: Manifest,
    /// The file that says what it may call; none for one that came without files.
    pub beside: Option<PathBuf>,
}

/// Why a component or the file beside it cannot be used.
#[derive(Debug, Error)]
pub enum PackageError {
    /// The component cannot be read.
    #[error("the component {} cannot be read: {error}", .path.display())]
    Component {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is another one than was pinned.
    #[error("{} is not the component that was pinned", .path.display())]
    Pinned {
        /// Its file.
        path: PathBuf,
        /// The digest that it has.
        found: String,
        /// The digest that was asked for.
        pinned: String,
    },
    /// It cannot be loaded.
    #[error("{shown} cannot be used: {error}")]
    Load {
        /// What it is called.
        shown: String,
        /// Why.
        error: LoadError,
    },
    /// The file beside it cannot be read.
    #[error("{} cannot be read: {error}", .path.display())]
    Beside {
        /// That file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file beside it says nothing that can be understood.
    #[error("{shown} cannot be used: {}", .error.to_string().trim_end())]
    Manifest {
        /// What it is called.
        shown: String,
        /// Why.
        error: ManifestError,
    },
}

impl PackageError {
    /// What to do, where that can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Pinned { found, pinned, .. } => Some(format!("its digest is {found}, and {pinned} was asked for")),
            Self::Manifest { .. } => Some(
                "it lists `[[origin]]` with a `url`, and a `bearer`: the environment variable of a token".to_string(),
            ),
            Self::Component { .. } | Self::Load { .. } | Self::Beside { .. } => None,
        }
    }
}

impl Package {
    /// The provider that a program carries within itself.
    ///
    /// # Errors
    /// When this machine cannot compile it.
    pub fn built_in(runtime: &Runtime, component: &[u8], manifest: &str) -> Result<Self, PackageError> {
        let load = |error| PackageError::Load {
            shown: "the built-in component".to_string(),
            error,
        };
        let parse = |error| PackageError::Manifest {
            shown: "provider.toml".to_string(),
            error,
        };
        Ok(Self {
            component: runtime.load(component).map_err(load)?,
            manifest: Manifest::parse(manifest).map_err(parse)?,
            beside: None,
        })
    }

    /// A component and the file of the same name, ending in `.toml`, beside it. Without that file it may call nothing.
    ///
    /// # Errors
    /// When one of the two cannot be used.
    pub fn open(runtime: &Runtime, file: &ComponentFile) -> Result<Self, PackageError> {
        let component = file.compile(runtime)?;
        let beside = file.path.with_extension("toml");
        let text = match fs::read_to_string(&beside) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(PackageError::Beside { path: beside, error }),
        };
        let parse = |error| PackageError::Manifest {
            shown: beside.display().to_string(),
            error,
        };
        Ok(Self {
            component,
            manifest: Manifest::parse(&text).map_err(parse)?,
            beside: Some(beside),
        })
    }
}

impl ComponentFile {
    /// A component's bytes, if they are the pinned ones.
    ///
    /// # Errors
    /// When the file cannot be read, or is another one than was pinned.
    pub fn bytes(&self) -> Result<Vec<u8>, PackageError> {
        let bytes = fs::read(&self.path).map_err(|error| PackageError::Component {
            path: self.path.clone(),
            error,
        })?;
        let found = Digest::of(&bytes).to_string();
        match &self.digest {
            Some(pinned) if *pinned != found => Err(PackageError::Pinned {
                path: self.path.clone(),
                found,
                pinned: pinned.clone(),
            }),
            _ => Ok(bytes),
        }
    }

    /// Compiles it. Nothing of it runs.
    ///
    /// # Errors
    /// When it is not there, not the pinned one, or not a component that can be used.
    pub fn compile(&self, runtime: &Runtime) -> Result<Component, PackageError> {
        runtime.load(&self.bytes()?).map_err(|error| PackageError::Load {
            shown: self.path.display().to_string(),
            error,
        })
    }
}

impl std::str::FromStr for ComponentFile {
    type Err = String;

    /// `FILE`, or `FILE@sha256:DIGEST`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (path, digest) = match text.rsplit_once("@sha256:") {
            None => (text, None),
            Some((path, digits)) => {
                let is_digest = digits.len() == 64 && digits.chars().all(|c| c.is_ascii_hexdigit());
                if !is_digest {
                    return Err("a digest is `sha256:` and 64 hexadecimal digits".to_string());
                }
                (path, Some(format!("sha256:{}", digits.to_ascii_lowercase())))
            }
        };
        if path.is_empty() {
            return Err("expected a file".to_string());
        }
        Ok(Self {
            path: PathBuf::from(path),
            digest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_may_be_pinned_by_its_digest() {
        let digest = "a".repeat(64);
        let pinned: ComponentFile = format!("dir/x.wasm@sha256:{}", digest.to_uppercase()).parse().unwrap();
        assert_eq!(pinned.path, PathBuf::from("dir/x.wasm"));
        assert_eq!(pinned.digest, Some(format!("sha256:{digest}")));
        assert!("x@y.wasm".parse::<ComponentFile>().unwrap().digest.is_none());
        assert!("x.wasm@sha256:abc".parse::<ComponentFile>().is_err());
        assert!(format!("@sha256:{digest}").parse::<ComponentFile>().is_err());
    }
}
