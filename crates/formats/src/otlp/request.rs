//! Export requests: their contents, the service and labels that a sender sets, and receivers' responses.
//!
//! Invariant: a request in which nothing is set keeps its bytes, including unknown fields. Elsewhere: sending it.

use std::collections::BTreeSet;

use prost::Message;

use super::message::{Dictionary, ExportResponse, KeyValue, PartialSuccess, ProfilesData, Resource};
use crate::foreign;

/// Attributes with the service name of a resource, in order of precedence.
const SERVICE: [&str; 2] = ["service.name", "process.executable.name"];

/// An `ExportProfilesServiceRequest`.
#[derive(Debug)]
pub struct ExportRequest {
    bytes: Vec<u8>,
    data: ProfilesData,
    is_changed: bool,
}

impl ExportRequest {
    /// Parses the request in a file, gzipped or not. `None`: the file holds something different, or is damaged.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        let bytes = foreign::unpacked(bytes).ok()?;
        if !super::is(&bytes) {
            return None;
        }
        let data = ProfilesData::decode(&*bytes).ok()?;
        Some(Self { data, bytes: bytes.into_owned(), is_changed: false })
    }

    /// Returns the number of profiles.
    pub fn profiles(&self) -> usize {
        let scopes = self.data.resource_profiles.iter().flat_map(|one| &one.scope_profiles);
        scopes.map(|scope| scope.profiles.len()).sum()
    }

    /// Returns the names of the services, of the resources that have one.
    pub fn services(&self) -> BTreeSet<&str> {
        let dictionary = dictionary(&self.data.dictionary);
        let resources = self.data.resource_profiles.iter().filter_map(|one| one.resource.as_ref());
        let service = |resource| SERVICE.iter().find_map(|name| attribute(resource, dictionary, name));
        resources.filter_map(service).collect()
    }

    /// Sets the service name of each resource without one: the recorded program, or `otherwise`.
    pub fn name_services(&mut self, otherwise: &str) {
        let ProfilesData { resource_profiles, dictionary: of_request } = &mut self.data;
        let dictionary = dictionary(of_request);
        for resource in resource_profiles.iter_mut().map(|one| one.resource.get_or_insert_default()) {
            if SERVICE.iter().any(|name| attribute(resource, dictionary, name).is_some()) {
                continue;
            }
            let command = attribute(resource, dictionary, "process.command_line").unwrap_or_default();
            let program = command.split_whitespace().next().and_then(|path| path.rsplit('/').next());
            let service = program.filter(|name| !name.is_empty()).unwrap_or(otherwise).to_owned();
            set(resource, dictionary, SERVICE[0], &service);
            self.is_changed = true;
        }
    }

    /// Sets the service of all resources.
    pub fn set_service(&mut self, name: &str) {
        self.set_attribute(SERVICE[0], name);
    }

    /// Sets an attribute of all resources.
    pub fn set_attribute(&mut self, name: &str, value: &str) {
        let ProfilesData { resource_profiles, dictionary: of_request } = &mut self.data;
        for one in resource_profiles {
            set(one.resource.get_or_insert_default(), dictionary(of_request), name, value);
        }
        self.is_changed = true;
    }

    /// Serializes the message.
    pub fn into_bytes(self) -> Vec<u8> {
        if self.is_changed { self.data.encode_to_vec() } else { self.bytes }
    }
}

/// Returns what a receiver rejected, or warned about, despite a success response. `None`: it accepted everything.
pub fn refusal(answer: &[u8]) -> Option<PartialSuccess> {
    let partial = ExportResponse::decode(answer).ok()?.partial_success?;
    (partial.rejected_profiles != 0 || !partial.error_message.is_empty()).then_some(partial)
}

/// Returns the dictionary of a request; an empty one if it has none.
fn dictionary(of_request: &Option<Dictionary>) -> &Dictionary {
    static EMPTY: Dictionary = Dictionary {
        mapping_table: Vec::new(),
        location_table: Vec::new(),
        function_table: Vec::new(),
        link_table: Vec::new(),
        string_table: Vec::new(),
        attribute_table: Vec::new(),
        stack_table: Vec::new(),
    };
    of_request.as_ref().unwrap_or(&EMPTY)
}

/// Returns a text attribute.
fn attribute<'r>(resource: &'r Resource, dictionary: &'r Dictionary, name: &str) -> Option<&'r str> {
    let found = resource.attributes.iter().find(|one| one.name(dictionary) == Some(name))?;
    found.text(dictionary)
}

fn set(resource: &mut Resource, dictionary: &Dictionary, name: &str, value: &str) {
    resource.attributes.retain(|one| one.name(dictionary) != Some(name));
    resource.attributes.push(KeyValue::of_text(name, value));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::message::{AnyValue, OneValue, Profile, ResourceProfiles, ScopeProfiles};
    use super::*;

    /// A request with a profile of each resource, and an unknown field.
    fn bytes(resources: &[&[(&str, &str)]]) -> Vec<u8> {
        let resource = |pairs: &&[(&str, &str)]| {
            let mut resource = Resource::default();
            pairs.iter().for_each(|(name, value)| set(&mut resource, &Dictionary::default(), name, value));
            let scope_profiles = vec![ScopeProfiles { scope: None, profiles: vec![Profile::default()] }];
            ResourceProfiles { resource: Some(resource), scope_profiles }
        };
        let dictionary = Dictionary { string_table: vec![String::new()], ..Dictionary::default() };
        let data = ProfilesData {
            resource_profiles: resources.iter().map(resource).collect(),
            dictionary: Some(dictionary),
        };
        let mut bytes = data.encode_to_vec();
        // Field 1000 with the value 1.
        bytes.extend(b"\xc0\x3e\x01");
        bytes
    }

    #[test]
    fn requests_keep_their_bytes_until_something_is_set() {
        let named = bytes(&[&[("service.name", "a")], &[("process.executable.name", "b")]]);
        let mut request = ExportRequest::find(&named).unwrap();
        assert_eq!((request.profiles(), request.services()), (2, ["a", "b"].into()));
        request.name_services("file");
        assert_eq!(request.into_bytes(), named);
        assert!(ExportRequest::find(b"main;work 3\n").is_none());
    }

    #[test]
    fn services_and_labels_are_set_in_all_resources() {
        let some = bytes(&[&[("service.name", "a")], &[("process.command_line", "/bin/b -x")], &[]]);
        let mut request = ExportRequest::find(&some).unwrap();
        request.name_services("file");
        assert_eq!(request.services(), ["a", "b", "file"].into());
        request.set_service("c");
        request.set_attribute("region", "eu");
        let again = ExportRequest::find(&request.into_bytes()).unwrap();
        assert_eq!((again.profiles(), again.services()), (3, ["c"].into()));
        for one in &again.data.resource_profiles {
            let resource = one.resource.as_ref().unwrap();
            assert_eq!(attribute(resource, dictionary(&again.data.dictionary), "region"), Some("eu"));
        }
    }

    /// Attributes as collectors write them.
    #[test]
    fn attributes_may_be_in_the_dictionary() {
        let mut data = ProfilesData::decode(&*bytes(&[&[("region", "eu")]])).unwrap();
        let strings = ["", "service.name", "a"].map(str::to_owned).to_vec();
        data.dictionary.as_mut().unwrap().string_table = strings;
        let value = Some(AnyValue { value: Some(OneValue::TextIndex(2)) });
        let service = KeyValue { key_strindex: 1, value, ..KeyValue::default() };
        data.resource_profiles[0].resource.as_mut().unwrap().attributes.push(service);
        let mut request = ExportRequest::find(&data.encode_to_vec()).unwrap();
        request.name_services("file");
        assert_eq!(request.services(), ["a"].into());
        request.set_service("b");
        let again = ExportRequest::find(&request.into_bytes()).unwrap();
        assert_eq!(again.services(), ["b"].into());
        assert_eq!(again.data.resource_profiles[0].resource.as_ref().unwrap().attributes.len(), 2);
    }

    #[test]
    fn an_answer_says_what_was_not_taken() {
        let answer = |rejected_profiles, error_message: &str| {
            let partial_success =
                Some(PartialSuccess { rejected_profiles, error_message: error_message.into() });
            refusal(&ExportResponse { partial_success }.encode_to_vec())
        };
        assert_eq!(refusal(b""), None);
        assert_eq!(answer(0, ""), None);
        assert_eq!(answer(0, "deprecated").unwrap().error_message, "deprecated");
        assert_eq!(answer(2, "").unwrap().rejected_profiles, 2);
    }
}
