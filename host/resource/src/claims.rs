//! One owner for each grant. A claim is taken when a resource is checked, and held until the run is over, so that a
//! second resource with the same claim is told so, and a grant that a resource of this run wants is not removed for
//! another that no longer does.

use std::collections::HashMap;

use thiserror::Error;

use crate::urn::Urn;

/// Who owns what, in one run.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    owners: HashMap<String, Urn>,
    /// What each resource claims: the same, the other way round.
    claims: HashMap<Urn, String>,
}

/// Another resource owns it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{}` and `{}` both declare `{claim}`: what one of them grants, the other would take away; remove one of the two",
    .owner.name(), .second.name()
)]
pub struct ClaimTaken {
    /// What both claim.
    pub claim: String,
    /// Who came first.
    pub owner: Urn,
    /// Who came second.
    pub second: Urn,
}

impl Claims {
    /// Takes a claim for a resource, in place of the one that it had.
    ///
    /// # Errors
    /// When another resource has it.
    pub fn take(&mut self, claim: &str, urn: &Urn) -> Result<(), ClaimTaken> {
        if let Some(owner) = self.owners.get(claim).filter(|owner| *owner != urn) {
            return Err(ClaimTaken {
                claim: claim.to_string(),
                owner: owner.clone(),
                second: urn.clone(),
            });
        }
        if let Some(before) = self.claims.insert(urn.clone(), claim.to_string()) {
            self.owners.remove(&before);
        }
        self.owners.insert(claim.to_string(), urn.clone());
        Ok(())
    }

    /// Gives up what a resource claims.
    pub fn release(&mut self, urn: &Urn) {
        if let Some(claim) = self.claims.remove(urn) {
            self.owners.remove(&claim);
        }
    }

    /// Who has a claim.
    pub fn owner(&self, claim: &str) -> Option<&Urn> {
        self.owners.get(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_resource_is_refused_and_both_are_named() {
        let mut claims = Claims::default();
        let (first, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        claims.take("grant", &first).unwrap();
        claims.take("grant", &first).unwrap();
        let error = claims.take("grant", &second).unwrap_err().to_string();
        assert!(error.contains("`first` and `second` both declare `grant`"), "{error}");
    }

    #[test]
    fn what_is_given_up_can_be_anothers() {
        let mut claims = Claims::default();
        let (first, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        claims.take("grant", &first).unwrap();
        claims.release(&first);
        claims.release(&second);
        assert_eq!(claims.owner("grant"), None);
        claims.take("grant", &second).unwrap();
    }

    #[test]
    fn a_resource_that_is_checked_again_gives_up_what_it_claimed_before() {
        let mut claims = Claims::default();
        let (first, second) = (Urn::new("s", "p", "t", "first"), Urn::new("s", "p", "t", "second"));
        claims.take("old", &first).unwrap();
        claims.take("new", &first).unwrap();
        claims.take("old", &second).unwrap();
        assert_eq!(claims.owner("old"), Some(&second));
        assert_eq!(claims.owner("new"), Some(&first));
    }
}
