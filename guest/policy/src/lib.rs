//! The rules of IAM grants, without I/O.
//!
//! A *grant* is one (target, role, condition, identity): a member resource owns one, a binding resource owns the
//! identity list of one (target, role, condition). Everything else in a target's policy belongs to others and goes
//! back as it was read.
//!
//! - [`target`], [`role`], [`identity`], [`condition`]: what a user writes, parsed into types that cannot hold a wrong
//!   value.
//! - [`grant_id`], [`import`]: the names of grants.
//! - [`resource`]: check, diff and footprint of the two shapes of resource, member and binding.
//! - [`document`]: a policy as it was read; [`operation`]: what a create, read, update or delete does to it.
#![no_std]

extern crate alloc;

mod binding;
pub mod condition;
pub mod config;
pub mod document;
pub mod failure;
pub mod grant_id;
pub mod identity;
pub mod import;
pub mod limits;
pub mod operation;
pub mod resource;
pub mod role;
pub mod subject;
pub mod target;
