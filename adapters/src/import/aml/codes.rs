//! What an import says about a definition: why no tool is made of it, or what the tool does not take over.

use toolward_support::report::codes;

/// Why no tool is made of a definition.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("it is a draft, and drafts are left out")]
    Draft,
    #[error("it is disabled")]
    Disabled,
    #[error("expected `spec_version` to be {expected:?}, found {found:?}")]
    SpecVersion { expected: String, found: String },
    #[error("its id makes no id of ours with {0:?} before it")]
    NoId(String),
    #[error("its tool would have the id {0}, which another definition has")]
    Taken(String),
    #[error("its `base_url` is not https: requests would go out in the clear")]
    Insecure,
    #[error("its request can't be made: {0}")]
    Request(String),
    #[error("`{0}` has invisible characters, which no signed text may hold")]
    Hidden(&'static str),
    #[error("what would be made of it is not valid: {0}")]
    Invalid(String),
}

codes! {
    for Refused {
        Self::Draft = "aml-draft", "`--allow-draft` takes drafts, too";
        Self::Disabled = "aml-disabled";
        Self::SpecVersion { .. } = "aml-spec-version-refused",
            "`--spec-version` names the version that your platform approves";
        Self::NoId(_) = "import-name-unusable";
        Self::Taken(_) = "import-name-taken";
        Self::Insecure = "aml-url-insecure";
        Self::Request(_) = "aml-request-unusable";
        Self::Hidden(_) = "aml-text-hidden";
        Self::Invalid(_) = "import-invalid";
    }
}

/// What a tool does not take over from its definition, or takes over in another way.
#[derive(Debug, thiserror::Error)]
pub(super) enum Note {
    #[error("a contract only: it is computed in process, and needs a driver")]
    Function,
    #[error(
        "a contract only: a person answers it, and can't be asked for its output as a form: {0}"
    )]
    Human(String),
    #[error("the person behind the caller is asked; its transport, {0}, is not used")]
    AskedHere(String),
    #[error("a contract only: this host does not call AWS, GCP or Azure functions")]
    Lambda,
    #[error("a contract only: this host does not call MCP servers")]
    Mcp,
    #[error("a contract only: this host does not send to message queues")]
    MessageQueue,
    #[error("a contract only: this host does not query databases")]
    Database,
    #[error("a contract only: this host does not speak gRPC")]
    Grpc,
    #[error("a contract only: this host does not assume cloud roles")]
    IamRole,
    #[error("a contract only: this host does not fetch OAuth 2 tokens")]
    Oauth2,
    #[error("deprecated, as its description says")]
    Deprecated,
    #[error(
        "{0} counts as a change for this host, though the tool only reads: a person is asked, unless policy says otherwise"
    )]
    ReadsByChange(&'static str),
    #[error("one attempt: only `retrieval` tools are retried")]
    OneAttempt,
    #[error("the inputs {0} go into the query: {1} has no body, and AML says no place")]
    InQuery(String, &'static str),
    #[error("the secret goes into the header `{0}`, as AML's text names none")]
    HeaderAssumed(&'static str),
    #[error("`{0}` in `error_codes` or `on_status` is ignored: it is not a status from 400 to 599")]
    StatusIgnored(String),
    #[error("the description was cut to 2000 characters")]
    Cut,
}

codes! {
    for Note {
        Self::Function = "aml-function-without-driver";
        Self::Human(_) = "aml-human-without-driver";
        Self::AskedHere(_) = "aml-human-asked-here";
        Self::Lambda = "aml-lambda-unsupported";
        Self::Mcp = "aml-mcp-unsupported";
        Self::MessageQueue = "aml-message-queue-unsupported";
        Self::Database = "aml-database-unsupported";
        Self::Grpc = "aml-grpc-unsupported";
        Self::IamRole = "aml-iam-role-unsupported";
        Self::Oauth2 = "aml-oauth2-unsupported";
        Self::Deprecated = "aml-deprecated";
        Self::ReadsByChange(_) = "aml-reads-by-change";
        Self::OneAttempt = "aml-one-attempt";
        Self::InQuery(..) = "aml-inputs-in-query";
        Self::HeaderAssumed(_) = "aml-header-assumed";
        Self::StatusIgnored(_) = "aml-status-ignored";
        Self::Cut = "aml-description-cut";
    }
}
