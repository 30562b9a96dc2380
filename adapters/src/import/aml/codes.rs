//! What an import reports about a definition: why no tool is made of it, or what the tool does not take over.

use toolward_support::report::codes;

codes! {
    /// Why no tool is made of a definition.
    #[derive(Debug)]
    pub(super) enum Refused: Error {
        Draft = "aml-draft" ["1 or –"], "a definition of AML is a draft, and drafts are left out",
            ("it is a draft, and drafts are left out") => "`--allow-draft` takes drafts, too";
        Disabled = "aml-disabled" ["1 or –"], "a definition of AML is disabled", ("it is disabled");
        SpecVersion { expected: String, found: String } = "aml-spec-version-refused" ["1 or –"],
            "a definition of AML has a `spec_version` that is not approved",
            ("expected `spec_version` to be {expected:?}, found {found:?}")
            => "`--spec-version` names the version that your platform approves";
        NoId(prefix: String) = "import-name-unusable", ("its id makes no id of ours with {prefix:?} before it");
        Taken(id: String) = "import-name-taken", ("its tool would have the id {id}, which another definition has");
        Insecure = "aml-url-insecure" ["1 or –"], "the `base_url` of a definition of AML is not https",
            ("its `base_url` is not https: requests would go out in the clear");
        Request(problem: String) = "aml-request-unusable" ["1 or –"],
            "the request of a definition of AML can't be made safely: a place is missing, or a placeholder is not one",
            ("its request can't be made: {problem}");
        Hidden(field: &'static str) = "aml-text-hidden" ["1 or –"],
            "a schema of a definition of AML has invisible characters",
            ("`{field}` has invisible characters, which no signed text may hold");
        Invalid(problem: String) = "import-invalid", ("what would be made of it is not valid: {problem}");
    }
}

codes! {
    /// What a tool does not take over from its definition, or takes over in another way.
    #[derive(Debug)]
    pub(super) enum Note: Error {
        Function = "aml-function-without-driver" Note,
            "a contract only: it is computed in process, and needs a driver";
        Human(problem: String) = "aml-human-without-driver" Note,
            "a contract only: a person answers it, and can't be asked for its output as a form",
            ("a contract only: a person answers it, and can't be asked for its output as a form: {problem}");
        AskedHere(transport: String) = "aml-human-asked-here" Note,
            "the person behind the caller is asked; its transport is not used",
            ("the person behind the caller is asked; its transport, {transport}, is not used");
        Lambda = "aml-lambda-unsupported" Note,
            "a contract only: this host does not call AWS, GCP or Azure functions";
        Mcp = "aml-mcp-unsupported" Note, "a contract only: this host does not call MCP servers";
        MessageQueue = "aml-message-queue-unsupported" Note,
            "a contract only: this host does not send to message queues";
        Database = "aml-database-unsupported" Note, "a contract only: this host does not query databases";
        Grpc = "aml-grpc-unsupported" Note, "a contract only: this host does not speak gRPC";
        IamRole = "aml-iam-role-unsupported" Note, "a contract only: this host does not assume cloud roles";
        Oauth2 = "aml-oauth2-unsupported" Note, "a contract only: this host does not fetch OAuth 2 tokens";
        Deprecated = "aml-deprecated" Note, "deprecated, as its description says";
        ReadsByChange(method: &'static str) = "aml-reads-by-change" Note,
            "the method of a tool that only reads counts as a change for this host: a person is asked, unless policy says otherwise",
            ("{method} counts as a change for this host, though the tool only reads: a person is asked, unless policy says otherwise");
        OneAttempt = "aml-one-attempt" Note, "one attempt: only `retrieval` tools are retried";
        InQuery(inputs: String, method: &'static str) = "aml-inputs-in-query" Note,
            "inputs go into the query: the method has no body, and AML says no place",
            ("the inputs {inputs} go into the query: {method} has no body, and AML says no place");
        HeaderAssumed(header: &'static str) = "aml-header-assumed" Note,
            "a secret goes into the usual header, as AML's text names none",
            ("the secret goes into the header `{header}`, as AML's text names none");
        StatusIgnored(status: String) = "aml-status-ignored" Note,
            "a key of `error_codes` or `on_status` is ignored: it is not a status from 400 to 599",
            ("`{status}` in `error_codes` or `on_status` is ignored: it is not a status from 400 to 599");
        Cut = "aml-description-cut" Note, "the description was cut to 2000 characters";
    }
}
