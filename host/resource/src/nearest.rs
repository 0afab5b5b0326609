//! The name that a misspelt one probably means.

/// The candidate that is most like `text`, if any is like it at all.
pub fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    /// Below this, two words have little more in common than letters do by chance.
    const ALIKE: f64 = 0.75;
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&text.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_own_and_another_finds_none() {
        let names = ["member", "name", "role", "condition"];
        assert_eq!(nearest("memeber", names), Some("member"));
        assert_eq!(nearest("Role", names), Some("role"));
        assert_eq!(nearest("xyz", names), None);
    }
}
