//! Breaks good requests in one point each, and checks that exactly the rule about that point refuses them.

use model_api_rules::{ApiFormat, ApiRequest, IssuedReasoning, judge, rules, violations};
use serde_json::Value;
use std::collections::BTreeSet;

/// A rule, and a change of a good request that breaks it.
pub(crate) type BrokenRequest = (&'static str, fn(&mut Value));

/// A good request of one format, and what its rules are applied with.
pub(crate) struct RuleFixture<'a> {
    pub(crate) format: ApiFormat,
    pub(crate) host: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) good: Value,
    pub(crate) issued: Option<&'a IssuedReasoning>,
}

/// Removes a member.
pub(crate) fn remove(value: &mut Value, name: &str) {
    let members = value.as_object_mut();
    members.expect("the good request has it").remove(name);
}

/// Returns a member that is a list.
pub(crate) fn list<'a>(value: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    let list = value[name].as_array_mut();
    list.expect("the good request has it")
}

impl<'a> RuleFixture<'a> {
    /// Creates the fixture of a request to any host, whose reasoning is not judged.
    pub(crate) fn new(format: ApiFormat, path: &'a str, good: Value) -> Self {
        Self {
            format,
            host: None,
            path,
            good,
            issued: None,
        }
    }
}

impl RuleFixture<'_> {
    fn names(&self, body: &Value) -> Vec<&'static str> {
        let request = self.request(body);
        violations(&request).iter().map(|it| it.rule).collect()
    }

    pub(crate) fn request<'b>(&'b self, body: &'b Value) -> ApiRequest<'b> {
        ApiRequest {
            host: self.host,
            issued: self.issued,
            ..ApiRequest::new(self.format, self.path, body)
        }
    }

    /// Checks that the good request passes, and that each broken one is refused by its rule alone. Returns the rules.
    pub(crate) fn check(&self, broken: &[BrokenRequest]) -> BTreeSet<&'static str> {
        assert_eq!(judge(&self.request(&self.good)), Ok(()));
        let mut wrong = Vec::new();
        for (at, (rule, change)) in broken.iter().enumerate() {
            let mut body = self.good.clone();
            change(&mut body);
            let names = self.names(&body);
            if names != [*rule] {
                wrong.push((at, *rule, names));
            }
        }
        assert_eq!(wrong, []);
        broken.iter().map(|(rule, _)| *rule).collect()
    }
}

/// Checks that each rule of a format was broken, and has a source.
pub(crate) fn assert_complete(format: ApiFormat, broken: &BTreeSet<&'static str>) {
    let all: BTreeSet<&str> = rules(format).iter().map(|rule| rule.name).collect();
    assert_eq!(all.len(), rules(format).len(), "names are unique");
    let missing: Vec<_> = all.difference(broken).collect();
    assert!(missing.is_empty(), "never broken: {missing:?}");
    for rule in rules(format) {
        assert!(rule.source.starts_with("https://"), "{}", rule.name);
    }
}
