#include "toolward.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wit.h"

static void *allocate(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        fputs("no memory is left\n", stderr);
        abort();
    }
    return memory;
}

/* Room for one more of count elements, whose number is doubled where it is full. */
static void *grown(void *elements, size_t count, size_t size) {
    if (count & (count - 1)) return elements;
    void *larger = realloc(elements, (count ? 2 * count : 1) * size);
    if (!larger) {
        fputs("no memory is left\n", stderr);
        abort();
    }
    return larger;
}

static char *copied(const void *bytes, size_t length) {
    char *copy = allocate(length + 1);
    if (length) memcpy(copy, bytes, length);
    return copy;
}

/* Text */

typedef struct {
    char *bytes;
    size_t length, room;
} buffer;

static void append(buffer *to, const char *bytes, size_t length) {
    if (to->room - to->length < length + 1) {
        to->room = 2 * (to->length + length) + 16;
        to->bytes = realloc(to->bytes, to->room);
        if (!to->bytes) {
            fputs("no memory is left\n", stderr);
            abort();
        }
    }
    if (length) memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
    to->bytes[to->length] = 0;
}

/* Bytes of the UTF-8 sequence at the start of the text; 0 where there is none. */
static size_t sequence(const unsigned char *text, size_t length) {
    unsigned char first = text[0];
    size_t bytes = first < 0x80                     ? 1
                   : first >= 0xc2 && first <= 0xdf ? 2
                   : (first & 0xf0) == 0xe0         ? 3
                   : first >= 0xf0 && first <= 0xf4 ? 4
                                                    : 0;
    if (!bytes || bytes > length) return 0;
    for (size_t at = 1; at < bytes; at++)
        if ((text[at] & 0xc0) != 0x80) return 0;
    /* Overlong forms, surrogates, and what lies behind the last character. */
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f)) return 0;
    if ((first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f)) return 0;
    return bytes;
}

static void append_character(buffer *to, uint32_t point) {
    char bytes[4];
    size_t length = 0;
    if (point < 0x80) {
        bytes[length++] = (char)point;
    } else {
        if (point < 0x800) {
            bytes[length++] = (char)(0xc0 | point >> 6);
        } else {
            if (point < 0x10000) {
                bytes[length++] = (char)(0xe0 | point >> 12);
            } else {
                bytes[length++] = (char)(0xf0 | point >> 18);
                bytes[length++] = (char)(0x80 | (point >> 12 & 0x3f));
            }
            bytes[length++] = (char)(0x80 | (point >> 6 & 0x3f));
        }
        bytes[length++] = (char)(0x80 | (point & 0x3f));
    }
    append(to, bytes, length);
}

/* Appends text as UTF-8. */
static void append_text(buffer *to, const char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        size_t bytes = sequence((const unsigned char *)text + at, length - at);
        if (bytes)
            append(to, text + at, bytes);
        else
            append_character(to, 0xfffd);
        at += bytes ? bytes : 1;
    }
}

static char *plain(const char *text) {
    buffer to = {0};
    append(&to, "", 0);
    if (text) append_text(&to, text, strlen(text));
    return to.bytes;
}

/* JSON */

typedef struct {
    const char *name;
    const tw_json *value;
} member;

struct tw_json {
    tw_kind kind;
    bool is_integer;
    int64_t integer; /* or a truth value */
    double number;
    char *text;
    member *members; /* of an array without names */
    size_t length;
};

static tw_json *made(tw_kind kind) {
    tw_json *value = allocate(sizeof *value);
    value->kind = kind;
    return value;
}

tw_json *tw_null(void) { return made(TW_NULL); }

tw_json *tw_array(void) { return made(TW_ARRAY); }

tw_json *tw_object(void) { return made(TW_OBJECT); }

tw_json *tw_bool(bool truth) {
    tw_json *value = made(TW_BOOL);
    value->integer = truth;
    return value;
}

tw_json *tw_integer(int64_t integer) {
    tw_json *value = made(TW_NUMBER);
    value->is_integer = true;
    value->integer = integer;
    value->number = (double)integer;
    return value;
}

tw_json *tw_number(double number) {
    if (!isfinite(number)) return tw_null();
    tw_json *value = made(TW_NUMBER);
    value->number = number;
    if (number >= -9007199254740992.0 && number <= 9007199254740992.0 &&
        number == (double)(int64_t)number) {
        value->is_integer = true;
        value->integer = (int64_t)number;
    }
    return value;
}

tw_json *tw_text(const char *text, size_t length) {
    tw_json *value = made(TW_STRING);
    value->text = copied(text, length);
    value->length = length;
    return value;
}

tw_json *tw_string(const char *text) { return text ? tw_text(text, strlen(text)) : tw_null(); }

static void add(tw_json *to, const char *name, const tw_json *value) {
    to->members = grown(to->members, to->length, sizeof *to->members);
    to->members[to->length++] = (member){name, value};
}

tw_json *tw_push(tw_json *array, const tw_json *value) {
    if (tw_kind_of(array) == TW_ARRAY) add(array, NULL, value);
    return array;
}

tw_json *tw_set(tw_json *object, const char *name, const tw_json *value) {
    if (tw_kind_of(object) != TW_OBJECT) return object;
    for (size_t at = 0; at < object->length; at++)
        if (!strcmp(object->members[at].name, name)) {
            object->members[at].value = value;
            return object;
        }
    add(object, copied(name, strlen(name)), value);
    return object;
}

tw_kind tw_kind_of(const tw_json *value) { return value ? value->kind : TW_NULL; }

const tw_json *tw_get(const tw_json *object, const char *name) {
    if (tw_kind_of(object) != TW_OBJECT) return NULL;
    /* From the end: where a name comes twice, the last one counts. */
    for (size_t at = object->length; at > 0; at--)
        if (!strcmp(object->members[at - 1].name, name)) return object->members[at - 1].value;
    return NULL;
}

static const member *member_at(const tw_json *value, size_t index) {
    bool has_members = tw_kind_of(value) == TW_ARRAY || tw_kind_of(value) == TW_OBJECT;
    return has_members && index < value->length ? &value->members[index] : NULL;
}

const tw_json *tw_at(const tw_json *value, size_t index) {
    const member *found = member_at(value, index);
    return found ? found->value : NULL;
}

const char *tw_name_at(const tw_json *object, size_t index) {
    const member *found = member_at(object, index);
    return found ? found->name : NULL;
}

size_t tw_length(const tw_json *value) { return value ? value->length : 0; }

bool tw_get_bool(const tw_json *value, bool fallback) {
    return tw_kind_of(value) == TW_BOOL ? value->integer != 0 : fallback;
}

int64_t tw_get_integer(const tw_json *value, int64_t fallback) {
    return tw_kind_of(value) == TW_NUMBER && value->is_integer ? value->integer : fallback;
}

double tw_get_number(const tw_json *value, double fallback) {
    return tw_kind_of(value) == TW_NUMBER ? value->number : fallback;
}

const char *tw_get_string(const tw_json *value, const char *fallback) {
    const char *text = tw_get_text(value);
    return text && strlen(text) == value->length ? text : fallback;
}

const char *tw_get_text(const tw_json *value) {
    return tw_kind_of(value) == TW_STRING ? value->text : NULL;
}

typedef struct {
    const char *at, *end;
    const char *why; /* why JSON that is well-formed is refused, or NULL */
} reader;

#define TEXT_OF(number) TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number

static void skip_space(reader *from) {
    while (from->at < from->end && strchr(" \t\r\n", *from->at) && *from->at)
        from->at++;
}

static bool take(reader *from, char wanted) {
    if (from->at == from->end || *from->at != wanted) return false;
    from->at++;
    return true;
}

static bool take_word(reader *from, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(from->end - from->at) < length || memcmp(from->at, word, length)) return false;
    from->at += length;
    return true;
}

static bool read_hex(reader *from, uint32_t *unit) {
    if (from->end - from->at < 4) return false;
    *unit = 0;
    for (int digit = 0; digit < 4; digit++) {
        char c = *from->at++;
        if (c >= '0' && c <= '9')
            *unit = *unit << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            *unit = *unit << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else
            return false;
    }
    return true;
}

static bool read_escape(reader *from, buffer *to) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (from->at == from->end) return false;
    char c = *from->at++;
    const char *found = c ? strchr(names, c) : NULL;
    if (found) {
        append(to, meant + (found - names), 1);
        return true;
    }
    uint32_t unit, low;
    if (c != 'u' || !read_hex(from, &unit)) return false;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        reader after = *from;
        if (take_word(&after, "\\u") && read_hex(&after, &low) && low >= 0xdc00 && low <= 0xdfff) {
            *from = after;
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    /* A surrogate without its other half is no character. */
    append_character(to, unit >= 0xd800 && unit <= 0xdfff ? 0xfffd : unit);
    return true;
}

/* Reads a string whose first quote was taken. */
static bool read_string(reader *from, buffer *to) {
    append(to, "", 0);
    while (from->at < from->end) {
        const char *start = from->at;
        while (from->at < from->end && *from->at != '"' && *from->at != '\\' &&
               (unsigned char)*from->at >= 0x20)
            from->at++;
        append_text(to, start, (size_t)(from->at - start));
        if (take(from, '"')) return true;
        if (!take(from, '\\') || !read_escape(from, to)) return false;
    }
    return false;
}

static bool read_digits(reader *from) {
    const char *start = from->at;
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9')
        from->at++;
    return from->at > start;
}

static tw_json *read_number(reader *from) {
    const char *start = from->at;
    bool whole = true;
    take(from, '-');
    if (!take(from, '0') && !read_digits(from)) return NULL;
    if (take(from, '.')) {
        whole = false;
        if (!read_digits(from)) return NULL;
    }
    if (take(from, 'e') || take(from, 'E')) {
        whole = false;
        if (!take(from, '+')) take(from, '-');
        if (!read_digits(from)) return NULL;
    }
    const char *text = copied(start, (size_t)(from->at - start));
    if (whole) {
        /* -2^63 to 2^63-1 have 19 digits at most. */
        uint64_t size = 0, most = *text == '-' ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
        const char *digit = text + (*text == '-');
        for (; *digit; digit++) {
            uint64_t value = (uint64_t)(*digit - '0');
            if (size > (most - value) / 10) break;
            size = size * 10 + value;
        }
        if (!*digit) return tw_integer(*text == '-' ? (int64_t)(0 - size) : (int64_t)size);
    }
    double number = strtod(text, NULL);
    if (isfinite(number)) return tw_number(number);
    from->why = "has a number beyond those of a double";
    return NULL;
}

static tw_json *read_value(reader *from, int depth) {
    skip_space(from);
    if (from->at == from->end) return NULL;
    bool is_object = *from->at == '{';
    if (is_object || *from->at == '[') {
        if (depth == TW_MAX_DEPTH) {
            from->why = "nests deeper than " TEXT_OF(TW_MAX_DEPTH) " levels";
            return NULL;
        }
        char end = is_object ? '}' : ']';
        tw_json *value = is_object ? tw_object() : tw_array();
        from->at++;
        skip_space(from);
        if (take(from, end)) return value;
        do {
            buffer name = {0};
            skip_space(from);
            if (is_object) {
                if (!take(from, '"') || !read_string(from, &name)) return NULL;
                /* It would end there, and pass for another member. */
                if (memchr(name.bytes, 0, name.length)) {
                    from->why = "has a member whose name holds a zero byte";
                    return NULL;
                }
                skip_space(from);
                if (!take(from, ':')) return NULL;
            }
            tw_json *next = read_value(from, depth + 1);
            if (!next) return NULL;
            add(value, name.bytes, next);
            skip_space(from);
        } while (take(from, ','));
        return take(from, end) ? value : NULL;
    }
    if (take(from, '"')) {
        buffer text = {0};
        if (!read_string(from, &text)) return NULL;
        tw_json *value = made(TW_STRING);
        value->text = text.bytes;
        value->length = text.length;
        return value;
    }
    if (take_word(from, "null")) return tw_null();
    if (take_word(from, "true")) return tw_bool(true);
    if (take_word(from, "false")) return tw_bool(false);
    return read_number(from);
}

tw_json *tw_parse_why(const char *text, size_t length, const char **why) {
    reader from = {text, text + length, NULL};
    tw_json *value = read_value(&from, 0);
    skip_space(&from);
    if (value && from.at == from.end) return value;
    *why = from.why ? from.why : "is not JSON";
    return NULL;
}

tw_json *tw_parse(const char *text, size_t length) {
    const char *why;
    return tw_parse_why(text, length, &why);
}

static void write_string(buffer *to, const char *text, size_t length) {
    append(to, "\"", 1);
    for (size_t at = 0; at < length;) {
        size_t start = at;
        while (at < length && (unsigned char)text[at] >= 0x20 && text[at] != '"' &&
               text[at] != '\\')
            at++;
        append_text(to, text + start, at - start);
        if (at == length) break;
        char escape[8];
        int size = snprintf(escape, sizeof escape,
                            (unsigned char)text[at] < 0x20 ? "\\u%04x" : "\\%c", text[at]);
        append(to, escape, (size_t)size);
        at++;
    }
    append(to, "\"", 1);
}

static void write_number(buffer *to, const tw_json *value) {
    char text[40];
    int size;
    if (value->is_integer) {
        size = snprintf(text, sizeof text, "%" PRId64, value->integer);
    } else {
        /* The shortest of those that read back as the same number. */
        for (int digits = DBL_DIG; digits <= DBL_DIG + 2; digits++) {
            size = snprintf(text, sizeof text, "%.*g", digits, value->number);
            if (strtod(text, NULL) == value->number) break;
        }
    }
    append(to, text, (size_t)size);
}

static bool write_value(buffer *to, const tw_json *value, int depth) {
    switch (tw_kind_of(value)) {
    case TW_NULL:
        append(to, "null", 4);
        return true;
    case TW_BOOL:
        append(to, value->integer ? "true" : "false", value->integer ? 4 : 5);
        return true;
    case TW_NUMBER:
        write_number(to, value);
        return true;
    case TW_STRING:
        write_string(to, value->text, value->length);
        return true;
    default:
        break;
    }
    if (depth == TW_MAX_DEPTH) return false;
    bool is_object = value->kind == TW_OBJECT;
    append(to, is_object ? "{" : "[", 1);
    for (size_t at = 0; at < value->length; at++) {
        if (at) append(to, ",", 1);
        if (is_object) {
            write_string(to, value->members[at].name, strlen(value->members[at].name));
            append(to, ":", 1);
        }
        if (!write_value(to, value->members[at].value, depth + 1)) return false;
    }
    append(to, is_object ? "}" : "]", 1);
    return true;
}

char *tw_print(const tw_json *value) {
    buffer to = {0};
    return write_value(&to, value, 0) ? to.bytes : NULL;
}

/* Values of the ABI */

static wit_string_t lent(const char *text) {
    char *copy = plain(text);
    return (wit_string_t){(uint8_t *)copy, strlen(copy)};
}

static wit_option_string_t lent_option(const char *text) {
    return text ? (wit_option_string_t){true, lent(text)} : (wit_option_string_t){0};
}

static wit_list_u8_t bytes(const void *data, size_t length) {
    return (wit_list_u8_t){(uint8_t *)copied(data, length), length};
}

static const char *taken(wit_string_t text) { return copied(text.ptr, text.len); }

static tw_json *taken_json(wit_string_t text, const char **why) {
    return tw_parse_why((const char *)text.ptr, text.len, why);
}

static const char *formatted(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0) length = 0;
    char *text = allocate((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

static tw_error failure(const char *code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *message = formatted(format, arguments);
    va_end(arguments);
    return (tw_error){.code = code, .message = message};
}

/* Results */

struct tw_result {
    enum { DONE, FAILED, ASKS } kind;
    const tw_json *value; /* or the state */
    tw_error error;
    toolward_driver_types_list_block_t blocks;
    toolward_driver_types_list_question_t questions;
};

tw_result *tw_done(const tw_json *value) {
    tw_result *done = allocate(sizeof *done);
    done->value = value;
    return done;
}

tw_result *tw_failed(const tw_error *error) {
    tw_result *failed = allocate(sizeof *failed);
    failed->kind = FAILED;
    failed->error = *error;
    return failed;
}

tw_result *tw_fail(const char *code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tw_error error = {.code = code, .message = formatted(format, arguments)};
    va_end(arguments);
    return tw_failed(&error);
}

static tw_result *add_block(tw_result *done, toolward_driver_types_content_t content) {
    toolward_driver_types_list_block_t *blocks = &done->blocks;
    blocks->ptr = grown(blocks->ptr, blocks->len, sizeof *blocks->ptr);
    blocks->ptr[blocks->len++] = (toolward_driver_types_block_t){.content = content};
    return done;
}

tw_result *tw_add_text(tw_result *done, const char *text) {
    toolward_driver_types_content_t content = {.tag = TOOLWARD_DRIVER_TYPES_CONTENT_TEXT};
    content.val.text = lent(text);
    return add_block(done, content);
}

static tw_result *add_media(tw_result *done, uint8_t tag, const char *mime_type, const void *data,
                            size_t length) {
    toolward_driver_types_content_t content = {.tag = tag};
    content.val.image = (toolward_driver_types_media_t){bytes(data, length), lent(mime_type)};
    return add_block(done, content);
}

tw_result *tw_add_image(tw_result *done, const char *mime_type, const void *data, size_t length) {
    return add_media(done, TOOLWARD_DRIVER_TYPES_CONTENT_IMAGE, mime_type, data, length);
}

tw_result *tw_add_audio(tw_result *done, const char *mime_type, const void *data, size_t length) {
    return add_media(done, TOOLWARD_DRIVER_TYPES_CONTENT_AUDIO, mime_type, data, length);
}

tw_result *tw_add_link(tw_result *done, const char *uri, const char *name, const char *mime_type) {
    toolward_driver_types_content_t content = {.tag = TOOLWARD_DRIVER_TYPES_CONTENT_RESOURCE_LINK};
    content.val.resource_link = (toolward_driver_types_link_t){
        .uri = lent(uri), .name = lent(name), .mime_type = lent_option(mime_type)};
    return add_block(done, content);
}

tw_result *tw_ask(const tw_json *state) {
    tw_result *asks = allocate(sizeof *asks);
    asks->kind = ASKS;
    asks->value = state;
    return asks;
}

static tw_result *add_question(tw_result *ask, const char *key, toolward_driver_types_ask_t what) {
    toolward_driver_types_list_question_t *questions = &ask->questions;
    questions->ptr = grown(questions->ptr, questions->len, sizeof *questions->ptr);
    questions->ptr[questions->len++] = (toolward_driver_types_question_t){lent(key), what};
    return ask;
}

tw_result *tw_add_form(tw_result *ask, const char *key, const char *message,
                       const tw_json *schema) {
    toolward_driver_types_ask_t what = {.tag = TOOLWARD_DRIVER_TYPES_ASK_FORM};
    what.val.form = (toolward_driver_types_form_t){lent(message), lent(tw_print(schema))};
    return add_question(ask, key, what);
}

tw_result *tw_add_sample(tw_result *ask, const char *key, const tw_json *parameters) {
    toolward_driver_types_ask_t what = {.tag = TOOLWARD_DRIVER_TYPES_ASK_SAMPLE};
    what.val.sample = lent(tw_print(parameters));
    return add_question(ask, key, what);
}

tw_result *tw_add_roots(tw_result *ask, const char *key) {
    return add_question(ask, key,
                        (toolward_driver_types_ask_t){.tag = TOOLWARD_DRIVER_TYPES_ASK_ROOTS});
}

/* The call */

/* The failure, where one of the texts can't be read; else NULL. */
static tw_result *read_answers(tw_call *call, const toolward_driver_types_resumption_t *resume) {
    const char *why;
    tw_json *answers = tw_object(), *statuses = tw_object();
    for (size_t at = 0; at < resume->answers.len; at++) {
        const toolward_driver_types_answer_t *answer = &resume->answers.ptr[at];
        const char *key = taken(answer->key), *status = "cancelled";
        if (answer->reply.tag == TOOLWARD_DRIVER_TYPES_REPLY_ACCEPTED) {
            status = "accepted";
            tw_json *value = taken_json(answer->reply.val.accepted, &why);
            if (!value) return tw_fail("input_invalid", "the answer to %s %s", key, why);
            tw_set(answers, key, value);
        } else if (answer->reply.tag == TOOLWARD_DRIVER_TYPES_REPLY_DECLINED) {
            status = "declined";
        }
        tw_set(statuses, key, tw_string(status));
    }
    call->resumed = true;
    call->answers = answers;
    call->statuses = statuses;
    if (!resume->state.len) return NULL;
    call->state = tw_parse_why((const char *)resume->state.ptr, resume->state.len, &why);
    return call->state ? NULL : tw_fail("input_invalid", "the state %s", why);
}

static tw_result *run(const toolward_driver_types_invocation_t *raw) {
    const char *why;
    tw_call call = {
        .id = taken(raw->id),
        .tool = taken(raw->tool),
        .tool_version = taken(raw->tool_version),
        .attempt = raw->attempt,
        .remaining_ms = raw->remaining_ms,
        .idempotency_key = taken(raw->idempotency_key),
    };
    call.input = taken_json(raw->input, &why);
    if (!call.input) return tw_fail("input_invalid", "the input %s", why);
    call.context = taken_json(raw->context, &why);
    if (!call.context) return tw_fail("input_invalid", "the context %s", why);
    if (raw->resume.is_some) {
        tw_result *failed = read_answers(&call, &raw->resume.val);
        if (failed) return failed;
    }
    for (const tw_tool *tool = tw_tools; tool->id; tool++)
        if (!strcmp(tool->id, call.tool)) {
            tw_result *result = tool->run(&call);
            return result ? result : tw_fail("internal", "the driver returned no result");
        }
    return tw_fail("not_found", "this driver does not implement %s", call.tool);
}

bool exports_toolward_driver_handler_execute(exports_toolward_driver_handler_invocation_t *call,
                                             exports_toolward_driver_handler_outcome_t *outcome,
                                             exports_toolward_driver_handler_tool_error_t *error) {
    tw_result *result = run(call);
    fflush(stdout); /* nothing runs after the call that would */
    const char *value = result->kind == FAILED ? NULL : tw_print(result->value);
    if (result->kind != FAILED && !value)
        result = tw_fail("internal", "the output nests deeper than %d levels", TW_MAX_DEPTH);
    if (result->kind == ASKS && !result->questions.len)
        result = tw_fail("internal", "the driver asks, but asks nothing");
    if (result->kind == DONE) {
        outcome->tag = TOOLWARD_DRIVER_TYPES_OUTCOME_DONE;
        outcome->val.done = (toolward_driver_types_tool_output_t){lent(value), result->blocks};
        return true;
    }
    if (result->kind == ASKS) {
        outcome->tag = TOOLWARD_DRIVER_TYPES_OUTCOME_NEEDS_INPUT;
        outcome->val.needs_input =
            (toolward_driver_types_input_request_t){result->questions, bytes(value, strlen(value))};
        return true;
    }
    const tw_error *failed = &result->error;
    const char *cause = failed->cause ? tw_print(failed->cause) : NULL;
    *error = (toolward_driver_types_tool_error_t){
        .code = lent(failed->code),
        .message = lent(failed->message),
        .retryable = failed->retryable || failed->retry_after_ms,
        .retry_after_ms = {failed->retry_after_ms != 0, failed->retry_after_ms},
    };
    if (cause) error->cause = (toolward_driver_types_option_json_t){true, lent(cause)};
    return false;
}

/* The host */

void tw_log(tw_level level, const char *message, const tw_json *fields) {
    wit_string_t text = lent(message), object;
    char *printed = tw_kind_of(fields) == TW_OBJECT ? tw_print(fields) : NULL;
    if (printed) object = lent(printed);
    toolward_driver_log_write((uint8_t)level, &text, printed ? &object : NULL);
}

void tw_progress(double done, double total, const char *message) {
    toolward_driver_progress_update_t update = {done, {total != 0, total}, lent_option(message)};
    toolward_driver_progress_report(&update);
}

static void explain_secret(const char *name, uint8_t why, tw_error *error) {
    switch (why) {
    case TOOLWARD_DRIVER_SECRETS_SECRET_ERROR_DENIED:
        *error =
            failure("unauthorised", "the secret %s is not declared, or not granted for this", name);
        return;
    case TOOLWARD_DRIVER_SECRETS_SECRET_ERROR_MISSING:
        *error = failure("auth_required", "the secret %s is granted, but has no value", name);
        return;
    default:
        *error = failure("upstream_error", "the store of the secret %s failed", name);
    }
}

const char *tw_secret_placeholder(const char *name, tw_error *error) {
    wit_string_t slug = lent(name), text;
    toolward_driver_secrets_secret_error_t why;
    if (toolward_driver_secrets_placeholder(&slug, &text, &why)) return taken(text);
    explain_secret(name, why, error);
    return NULL;
}

const char *tw_secret_reveal(const char *name, size_t *length, tw_error *error) {
    wit_string_t slug = lent(name);
    wit_list_u8_t value;
    toolward_driver_secrets_secret_error_t why;
    if (!toolward_driver_secrets_reveal(&slug, &value, &why)) {
        explain_secret(name, why, error);
        return NULL;
    }
    *length = value.len;
    return copied(value.ptr, value.len);
}

bool tw_secret_store(const char *name, const void *value, size_t length, tw_error *error) {
    wit_string_t slug = lent(name);
    wit_list_u8_t stored = bytes(value, length);
    toolward_driver_secrets_secret_error_t why;
    if (toolward_driver_secrets_store(&slug, &stored, &why)) return true;
    explain_secret(name, why, error);
    return false;
}

const tw_json *tw_call_tool(const char *tool, const tw_json *input, uint64_t timeout_ms,
                            tw_error *error) {
    const char *text = tw_print(input);
    if (!text) {
        *error =
            failure("internal", "the input of %s nests deeper than %d levels", tool, TW_MAX_DEPTH);
        return NULL;
    }
    toolward_driver_tools_request_t request = {
        lent(tool), lent(text), {timeout_ms != 0, timeout_ms}};
    toolward_driver_tools_tool_output_t output;
    toolward_driver_tools_tool_error_t raw;
    if (toolward_driver_tools_call(&request, &output, &raw)) {
        const char *why;
        tw_json *value = taken_json(output.structured, &why);
        if (!value) *error = failure("upstream_error", "the output of %s %s", tool, why);
        return value;
    }
    const char *why; /* a cause that can't be read is left out */
    *error = (tw_error){
        .code = taken(raw.code),
        .message = taken(raw.message),
        .retryable = raw.retryable,
        .retry_after_ms = raw.retry_after_ms.is_some ? raw.retry_after_ms.val : 0,
        .cause = raw.cause.is_some ? taken_json(raw.cause.val, &why) : NULL,
    };
    return NULL;
}

static bool explain_bucket(const char *name, const wasi_keyvalue_store_error_t *why, bool opens,
                           tw_error *error) {
    if (why->tag == WASI_KEYVALUE_STORE_ERROR_OTHER)
        *error = failure("upstream_error", "the bucket %s: %s", name, taken(why->val.other));
    else if (opens || why->tag == WASI_KEYVALUE_STORE_ERROR_NO_SUCH_STORE)
        *error = failure("unauthorised", "the bucket %s is not declared, or not granted", name);
    else
        *error =
            failure("unauthorised",
                    "the bucket %s may not be written: declare `mutates: database:%s`", name, name);
    return false;
}

static wasi_keyvalue_store_borrow_bucket_t borrowed(const tw_bucket *bucket) {
    return (wasi_keyvalue_store_borrow_bucket_t){bucket->handle};
}

bool tw_bucket_open(tw_bucket *bucket, const char *name, tw_error *error) {
    wit_string_t identifier = lent(name);
    wasi_keyvalue_store_own_bucket_t opened;
    wasi_keyvalue_store_error_t why;
    if (!wasi_keyvalue_store_open(&identifier, &opened, &why))
        return explain_bucket(name, &why, true, error);
    *bucket = (tw_bucket){copied(name, strlen(name)), opened.__handle};
    return true;
}

bool tw_bucket_get(const tw_bucket *bucket, const char *key, const char **value, size_t *length,
                   tw_error *error) {
    wit_string_t name = lent(key);
    wit_option_list_u8_t found;
    wasi_keyvalue_store_error_t why;
    if (!wasi_keyvalue_store_method_bucket_get(borrowed(bucket), &name, &found, &why))
        return explain_bucket(bucket->name, &why, false, error);
    *value = found.is_some ? copied(found.val.ptr, found.val.len) : NULL;
    *length = found.is_some ? found.val.len : 0;
    return true;
}

bool tw_bucket_set(const tw_bucket *bucket, const char *key, const void *value, size_t length,
                   tw_error *error) {
    wit_string_t name = lent(key);
    wit_list_u8_t stored = bytes(value, length);
    wasi_keyvalue_store_error_t why;
    return wasi_keyvalue_store_method_bucket_set(borrowed(bucket), &name, &stored, &why) ||
           explain_bucket(bucket->name, &why, false, error);
}

bool tw_bucket_delete(const tw_bucket *bucket, const char *key, tw_error *error) {
    wit_string_t name = lent(key);
    wasi_keyvalue_store_error_t why;
    return wasi_keyvalue_store_method_bucket_delete(borrowed(bucket), &name, &why) ||
           explain_bucket(bucket->name, &why, false, error);
}

bool tw_bucket_exists(const tw_bucket *bucket, const char *key, bool *exists, tw_error *error) {
    wit_string_t name = lent(key);
    wasi_keyvalue_store_error_t why;
    return wasi_keyvalue_store_method_bucket_exists(borrowed(bucket), &name, exists, &why) ||
           explain_bucket(bucket->name, &why, false, error);
}

bool tw_bucket_increment(const tw_bucket *bucket, const char *key, uint64_t delta, uint64_t *sum,
                         tw_error *error) {
    wit_string_t name = lent(key);
    wasi_keyvalue_store_error_t why;
    return wasi_keyvalue_atomics_increment(borrowed(bucket), &name, delta, sum, &why) ||
           explain_bucket(bucket->name, &why, false, error);
}

const tw_json *tw_bucket_keys(const tw_bucket *bucket, tw_error *error) {
    tw_json *keys = tw_array();
    uint64_t cursor, *next = NULL;
    do {
        wasi_keyvalue_store_key_response_t page;
        wasi_keyvalue_store_error_t why;
        if (!wasi_keyvalue_store_method_bucket_list_keys(borrowed(bucket), next, &page, &why)) {
            explain_bucket(bucket->name, &why, false, error);
            return NULL;
        }
        for (size_t at = 0; at < page.keys.len; at++)
            tw_push(keys, tw_text((const char *)page.keys.ptr[at].ptr, page.keys.ptr[at].len));
        cursor = page.cursor.val;
        next = page.cursor.is_some ? &cursor : NULL;
    } while (next);
    return keys;
}
