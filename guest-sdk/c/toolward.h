/* What the author of a Toolward driver in C uses.
 *
 * A driver carries out one or more tool contracts as a WebAssembly component of a
 * toolward:driver@0.1.0 world. It grants nothing; the host does.
 *
 *     #include "toolward.h"
 *
 *     static tw_result *count(const tw_call *call) {
 *         const char *text = tw_get_string(tw_get(call->input, "text"), "");
 *         if (!*text) return tw_fail("text:empty", "there is nothing to count");
 *         tw_json *output = tw_object();
 *         tw_set(output, "bytes", tw_integer(strlen(text)));
 *         return tw_done(output);
 *     }
 *
 *     const tw_tool tw_tools[] = {{"text.count", count}, {0}};
 *
 * An instance runs one call and is dropped then, so nothing is freed: what these
 * functions return is good until the call ends. Texts are UTF-8 and end in a zero
 * byte; bytes that are not UTF-8 are replaced on their way out. Where no memory is
 * left, the driver aborts.
 *
 * A component imports wasi:keyvalue only where the driver uses a bucket. For HTTP
 * there is nothing here yet. */

#ifndef TOOLWARD_H
#define TOOLWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* JSON */

/* How deep arrays and objects nest that are read and written. The host allows
 * fewer. */
#define TW_MAX_DEPTH 256

typedef enum { TW_NULL, TW_BOOL, TW_NUMBER, TW_STRING, TW_ARRAY, TW_OBJECT } tw_kind;

/* A JSON value. Every function takes NULL for one that is missing. */
typedef struct tw_json tw_json;

/* Reads a value; NULL where the text is not JSON, nests too deep, has a number
 * beyond a double, or a member whose name holds a zero byte. */
tw_json *tw_parse(const char *text, size_t length);
/* The same, and sets *why to the reason of a failure: "is not JSON" or the like. */
tw_json *tw_parse_why(const char *text, size_t length, const char **why);
/* The value's text; NULL where it nests too deep. */
char *tw_print(const tw_json *value);

tw_json *tw_null(void);
tw_json *tw_bool(bool value);
tw_json *tw_integer(int64_t value);
/* A number; one that is not finite becomes null. */
tw_json *tw_number(double value);
tw_json *tw_string(const char *text);
/* The same for text of this length, which may hold zero bytes. */
tw_json *tw_text(const char *text, size_t length);
tw_json *tw_array(void);
tw_json *tw_object(void);
/* Adds a value to the end of an array, which is returned. */
tw_json *tw_push(tw_json *array, const tw_json *value);
/* Gives a member of an object a value, and returns the object. */
tw_json *tw_set(tw_json *object, const char *name, const tw_json *value);

/* TW_NULL for a missing value, too. */
tw_kind tw_kind_of(const tw_json *value);
/* The member of this name; NULL where there is none. */
const tw_json *tw_get(const tw_json *object, const char *name);
/* The value at this place of an array or object, from 0; NULL behind the end. */
const tw_json *tw_at(const tw_json *value, size_t index);
/* The name of the member at this place. */
const char *tw_name_at(const tw_json *object, size_t index);
/* Values of an array, members of an object, bytes of a string; else 0. */
size_t tw_length(const tw_json *value);
/* The value as one of C, or the fallback where it is of another kind. An integer
 * beyond int64_t, or a number with a fraction, is none of tw_get_integer. A string
 * that holds a zero byte, where C would cut it, is none of tw_get_string. */
bool tw_get_bool(const tw_json *value, bool fallback);
int64_t tw_get_integer(const tw_json *value, int64_t fallback);
double tw_get_number(const tw_json *value, double fallback);
const char *tw_get_string(const tw_json *value, const char *fallback);
/* All tw_length bytes of a string, which may hold zero bytes; NULL for another kind. */
const char *tw_get_text(const tw_json *value);

/* Calls */

/* One call of one tool. */
typedef struct {
    const tw_json *input;        /* valid against the contract's inputs; without defaults */
    const tw_json *context;      /* of operator or embedder; an empty object without one */
    const char *id;              /* a UUIDv7, the same over retries and questions */
    const char *tool;            /* the id of the contract that is called */
    const char *tool_version;    /* its version */
    uint32_t attempt;            /* from 1; rises with retries, not with questions */
    uint64_t remaining_ms;       /* to the deadline, measured when this call started */
    const char *idempotency_key; /* the same for all attempts: send it to upstreams */
    bool resumed;                /* whether this call follows tw_ask */
    const tw_json *state;        /* the state given there */
    const tw_json *answers;      /* the answers by key; those not accepted are missing */
    const tw_json *statuses;     /* "accepted", "declined" or "cancelled", by key */
} tw_call;

/* Why a call failed. */
typedef struct {
    const char *code;        /* AIP-14's (not_found, upstream_error, …) or domain:code */
    const char *message;     /* for people and models */
    bool retryable;          /* the same call may succeed later */
    uint64_t retry_after_ms; /* and not before; 0 leaves it to the host */
    const tw_json *cause;    /* what lies behind it, or NULL */
} tw_error;

/* How a call ends. */
typedef struct tw_result tw_result;

/* The driver's tools, which it defines: {id, function} for each, then {0}. */
typedef struct {
    const char *id;
    tw_result *(*run)(const tw_call *call);
} tw_tool;
extern const tw_tool tw_tools[];

/* The call is done. Without blocks the host shows the value's JSON as text. */
tw_result *tw_done(const tw_json *value);
/* The call failed. The message is as by printf. */
tw_result *tw_fail(const char *code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The call failed as the error says. */
tw_result *tw_failed(const tw_error *error);

/* Blocks beside the value, which the result is returned for. */
tw_result *tw_add_text(tw_result *done, const char *text);
tw_result *tw_add_image(tw_result *done, const char *mime_type, const void *data, size_t length);
tw_result *tw_add_audio(tw_result *done, const char *mime_type, const void *data, size_t length);
/* The media type may be NULL. */
tw_result *tw_add_link(tw_result *done, const char *uri, const char *name, const char *mime_type);

/* The call needs answers first: the driver is called anew, in a fresh instance,
 * with this state (at most 64 KiB; the caller can read it) and the answers. Each
 * kind of question is declared (requires.user) and granted. Keys are unique. */
tw_result *tw_ask(const tw_json *state);
/* A form, by a flat JSON Schema object of primitive properties. */
tw_result *tw_add_form(tw_result *ask, const char *key, const char *message, const tw_json *schema);
/* A question to the caller's model: parameters of MCP's sampling/createMessage. */
tw_result *tw_add_sample(tw_result *ask, const char *key, const tw_json *parameters);
/* The caller's workspace roots. */
tw_result *tw_add_roots(tw_result *ask, const char *key);

/* The host */

typedef enum { TW_TRACE, TW_DEBUG, TW_INFO, TW_WARN, TW_ERROR } tw_level;

/* A record to the host, capped per call and redacted; fields is an object, or NULL. */
void tw_log(tw_level level, const char *message, const tw_json *fields);
/* Done of total, which is 0 where it isn't known; the message may be NULL. Done
 * must rise from report to report. */
void tw_progress(double done, double total, const char *message);

/* What can fail returns NULL or false, and says why in *error. */

/* Text for an outgoing header, which the host replaces by the secret. */
const char *tw_secret_placeholder(const char *name, tw_error *error);
/* The secret itself, which takes a policy line of its own. */
const char *tw_secret_reveal(const char *name, size_t *length, tw_error *error);
/* Stores a new value, where the contract declares mutates: secret:NAME. */
bool tw_secret_store(const char *name, const void *value, size_t length, tw_error *error);

/* Calls another tool, named in requires.tools and granted. timeout_ms lowers the
 * deadline; 0 leaves it. */
const tw_json *tw_call_tool(const char *tool, const tw_json *input, uint64_t timeout_ms,
                            tw_error *error);

/* A bucket, named in requires.database or mutates: database:NAME and granted. */
typedef struct {
    const char *name;
    int32_t handle;
} tw_bucket;

bool tw_bucket_open(tw_bucket *bucket, const char *name, tw_error *error);
/* *value is NULL where the key has none; a zero byte follows it. */
bool tw_bucket_get(const tw_bucket *bucket, const char *key, const char **value, size_t *length,
                   tw_error *error);
bool tw_bucket_set(const tw_bucket *bucket, const char *key, const void *value, size_t length,
                   tw_error *error);
/* A key that is missing is no error. */
bool tw_bucket_delete(const tw_bucket *bucket, const char *key, tw_error *error);
bool tw_bucket_exists(const tw_bucket *bucket, const char *key, bool *exists, tw_error *error);
/* Adds to the number under the key, from 0 where there is none: one step, whatever
 * other calls do at the same time. */
bool tw_bucket_increment(const tw_bucket *bucket, const char *key, uint64_t delta, uint64_t *sum,
                         tw_error *error);
/* All keys, as an array of strings in no promised order. */
const tw_json *tw_bucket_keys(const tw_bucket *bucket, tw_error *error);

#ifdef __cplusplus
}
#endif

#endif
