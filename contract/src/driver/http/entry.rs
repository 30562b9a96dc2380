//! `metadata.http` of one entry of `implements`.

use super::defaults::HttpDefaults;
use super::{Endpoint, HttpCall, Method, errors, headers, hints, query};
use crate::codes;
use crate::diagnostic::Report;
use crate::driver::response::Response;
use crate::driver::template::Body;
use crate::shared::{self, word};
use crate::source::{Field, Fields};

impl HttpCall {
    pub(in crate::driver) fn read(
        field: &Field<'_>,
        defaults: &mut HttpDefaults,
        report: &mut Report<'_>,
    ) -> Option<HttpCall> {
        let mut fields = report.read(Fields::of(field))?;
        let mut endpoint = endpoint(&mut fields, defaults, report);
        let method = match fields.take("method") {
            Some(field) => {
                let code = &codes::WRONG_VALUE;
                word(&field, Method::NAMES, Method::parse, code, report)
            }
            None => Some(defaults.method()),
        };
        let own = match fields.take("headers") {
            Some(field) => headers::read(&field, &mut defaults.reading, report),
            None => Vec::new(),
        };
        let mut headers = headers::merged(&defaults.headers, own);
        if let Some(field) = fields.take("query_template") {
            let mut nowhere = Endpoint {
                segments: Vec::new(),
                query: Vec::new(),
            };
            let endpoint = endpoint.as_mut().unwrap_or(&mut nowhere);
            query::read(&field, endpoint, &mut defaults.reading, report);
        }
        if let Some(endpoint) = &endpoint {
            query::one_place_each(endpoint, &headers, field, report);
        }
        let body = body(&mut fields, method, report);
        let response = Response::read(&mut fields, &mut defaults.reading, report);
        let idempotency_key_header = fields
            .take("idempotency_key_header")
            .and_then(|field| headers::idempotency_key(&field, &headers, report));
        let errors = match fields.take("errors") {
            Some(field) => errors::read(&field, report),
            None => Vec::new(),
        };
        let retry_statuses = fields.take("retry_statuses");
        let retry_statuses = retry_statuses.map(|field| errors::statuses(&field, report));
        let timeout = shared::milliseconds(&mut fields, "timeout_ms", report);
        if let Some(field) = fields.take("streaming") {
            hints::streaming(&field, false, report);
        }
        report.unknown(fields);
        if body.is_none() {
            // One of `default_headers` is for the requests that have a body.
            headers.retain(|(name, _)| name != "content-type");
        }
        Some(HttpCall {
            endpoint: endpoint?,
            method: method?,
            headers,
            body,
            response,
            idempotency_key_header,
            errors,
            retry_statuses,
            timeout: timeout.map(|given| given.value),
            secrets_by_policy: Vec::new(),
        })
    }
}

fn endpoint(
    fields: &mut Fields<'_>,
    defaults: &mut HttpDefaults,
    report: &mut Report<'_>,
) -> Option<Endpoint> {
    let field = report.read(fields.required("endpoint"))?;
    let found = report.read(field.text())?;
    match Endpoint::read(found) {
        Ok(endpoint) => {
            if !endpoint.query.is_empty() {
                defaults.reading.old("a query in `endpoint`", field.at);
            }
            Some(endpoint.below(defaults.segments()))
        }
        Err((code, message)) => {
            report.add(code, field.at, message);
            None
        }
    }
}

/// `body_template`, or the input for a method that sends one.
fn body(fields: &mut Fields<'_>, method: Option<Method>, report: &mut Report<'_>) -> Option<Body> {
    let Some(field) = fields.take("body_template") else {
        let input = method.filter(|method| method.sends_input());
        return input.map(|_| Body::whole());
    };
    if let Some(method) = method.filter(|method| !method.takes_body()) {
        let message = format!(
            "expected no `{}` with {}, found one",
            field.name,
            method.as_str()
        );
        report.add(&codes::HTTP_BODY_UNEXPECTED, field.key_at, message);
    }
    let read = Body::read(&field.to_value());
    read.map_err(|problem| {
        report.add(problem.code, field.place(&problem.pointer), problem.message);
    })
    .ok()
}
