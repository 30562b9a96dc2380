/* The conformance tools in C. `../README.md` says what each of them answers. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "toolward.h"

static tw_result *done(const tw_json *value) {
    return tw_done(tw_set(tw_object(), "result", value));
}

static tw_result *greet(const tw_call *call) {
    const char *name = tw_get_string(tw_get(call->input, "name"), "");
    size_t size = strlen(name) + sizeof "Hello, !";
    char *greeting = malloc(size);
    if (!greeting) return tw_fail("internal", "no memory is left");
    snprintf(greeting, size, "Hello, %s!", name);
    return done(tw_string(greeting));
}

static tw_result *write_log(const tw_call *call) {
    (void)call;
    tw_log(TW_INFO, "from the guest", tw_set(tw_object(), "n", tw_integer(1)));
    puts("to stdout");
    fputs("to stderr\n", stderr);
    return done(tw_string("logged"));
}

static tw_result *progress(const tw_call *call) {
    (void)call;
    for (int step = 1; step <= 3; step++) {
        char message[16];
        snprintf(message, sizeof message, "step %d", step);
        tw_progress(step, 3, message);
    }
    return done(tw_string("reported"));
}

static tw_result *error(const tw_call *call) {
    (void)call;
    tw_error asked = {
        .code = "probe:own",
        .message = "asked for",
        .retryable = true,
        .cause = tw_set(tw_object(), "why", tw_string("asked")),
    };
    return tw_failed(&asked);
}

static tw_result *throw(const tw_call *call) {
    (void)call;
    fputs("uncaught boom\n", stderr);
    abort();
}

static tw_result *numbers(const tw_call *call) {
    (void)call;
    unsigned char bytes[16];
    unsigned seed;
    if (getentropy(bytes, sizeof bytes) || getentropy(&seed, sizeof seed))
        return tw_fail("internal", "%s", strerror(errno));
    srand(seed);
    char text[2 * sizeof bytes + 1];
    for (size_t at = 0; at < sizeof bytes; at++)
        sprintf(text + 2 * at, "%02x", bytes[at]);
    tw_json *both = tw_object();
    tw_set(both, "number", tw_number((double)rand() / RAND_MAX));
    tw_set(both, "bytes", tw_string(text));
    return done(both);
}

static tw_result *memory(const tw_call *call) {
    (void)call;
    /* Volatile, as a compiler leaves out memory that nobody reads. */
    static char *volatile pieces[128];
    for (size_t piece = 0; piece < 128; piece++) {
        pieces[piece] = calloc(1 << 20, 1);
        if (!pieces[piece]) return tw_fail("internal", "no memory is left");
    }
    return done(tw_integer(128));
}

static tw_result *loop(const tw_call *call) {
    (void)call;
    for (volatile int turn = 0;; turn++) {
    }
}

static tw_result *nested(const tw_call *call) {
    tw_json *value = tw_array();
    for (int64_t depth = tw_get_integer(tw_get(call->input, "depth"), 1); depth > 1; depth--)
        value = tw_push(tw_array(), value);
    return done(value);
}

/* A compiler that knew that it never ends would not call it. */
static int deeper(volatile int *depth) { return ++*depth < 0 ? 0 : deeper(depth) + *depth; }

static tw_result *recurse(const tw_call *call) {
    (void)call;
    volatile int depth = 0;
    return done(tw_integer(deeper(&depth)));
}

static const tw_tool operations[] = {
    {"greet", greet},
    {"log", write_log},
    {"progress", progress},
    {"error", error},
    {"throw", throw},
    {"random", numbers},
    {"memory", memory},
    {"loop", loop},
    {"json", nested},
    {"recurse", recurse},
    {0},
};

static tw_result *probe(const tw_call *call) {
    const char *op = tw_get_string(tw_get(call->input, "op"), "");
    for (const tw_tool *operation = operations; operation->id; operation++)
        if (!strcmp(operation->id, op)) return operation->run(call);
    return tw_fail("input_invalid", "no such op");
}

static tw_result *echo(const tw_call *call) { return done(tw_get(call->input, "text")); }

static tw_result *keyvalue(const tw_call *call) {
    tw_bucket bucket;
    tw_error failed;
    uint64_t sum;
    if (!tw_bucket_open(&bucket, "conformance", &failed)) return tw_failed(&failed);
    const char *key = tw_get_string(tw_get(call->input, "key"), "");
    if (!tw_bucket_increment(&bucket, key, 1, &sum, &failed)) return tw_failed(&failed);
    return done(tw_integer((int64_t)sum));
}

static tw_result *secret(const tw_call *call) {
    (void)call;
    tw_error failed;
    const char *placeholder = tw_secret_placeholder("conformance-token", &failed);
    if (!placeholder) return tw_failed(&failed);
    tw_json *told = tw_object();
    tw_set(told, "start", tw_text(placeholder, 4));
    tw_set(told, "length", tw_integer((int64_t)strlen(placeholder)));
    return done(told);
}

static tw_result *tool(const tw_call *call) {
    tw_error failed;
    tw_json *input = tw_set(tw_object(), "text", tw_get(call->input, "text"));
    const tw_json *output = tw_call_tool("conformance.echo", input, 0, &failed);
    return output ? done(output) : tw_failed(&failed);
}

static tw_result *ask(const tw_call *call) {
    if (!call->resumed) {
        static const char schema[] = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
                                     "\"string\"}},\"required\":[\"name\"]}";
        tw_result *asks = tw_ask(tw_set(tw_object(), "greeting", tw_string("Hello")));
        return tw_add_form(asks, "who", "Whom shall I greet?", tw_parse(schema, sizeof schema - 1));
    }
    const char *status = tw_get_string(tw_get(call->statuses, "who"), "");
    if (strcmp(status, "accepted")) return tw_fail("probe:nobody", "%s", status);
    const char *greeting = tw_get_string(tw_get(call->state, "greeting"), "");
    const char *name = tw_get_string(tw_get(tw_get(call->answers, "who"), "name"), "");
    size_t size = strlen(greeting) + strlen(name) + sizeof ", !";
    char *text = malloc(size);
    if (!text) return tw_fail("internal", "no memory is left");
    snprintf(text, size, "%s, %s!", greeting, name);
    return done(tw_string(text));
}

static tw_result *files(const tw_call *call) {
    (void)call;
    FILE *from = fopen("/data/in.txt", "rb"), *to = from ? fopen("/data/out.txt", "wb") : NULL;
    if (!to) return tw_fail("internal", "%s", strerror(errno));
    int64_t written = 0;
    for (int byte; (byte = getc(from)) != EOF; written++)
        putc(toupper(byte), to);
    if (ferror(from) || fclose(to)) return tw_fail("internal", "%s", strerror(errno));
    return done(tw_integer(written));
}

const tw_tool tw_tools[] = {
    {"conformance.probe", probe},       {"conformance.echo", echo},
    {"conformance.keyvalue", keyvalue}, {"conformance.secret", secret},
    {"conformance.tool", tool},         {"conformance.ask", ask},
    {"conformance.files", files},       {0},
};
