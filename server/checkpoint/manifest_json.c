#include "server/checkpoint/manifest_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_manifest_json_fail(struct dp_manifest_json *json, const char *field, const char *what)
{
    if (json->status != DP_OK)
        return json->status;
    json->status = dp_fail(json->err, DP_CORRUPT, "the manifest's field \"%s%s%s\" should be %s", json->where,
                           json->where[0] && field[0] ? "." : "", field, what);
    return json->status;
}

size_t dp_manifest_json_enter(struct dp_manifest_json *json, const char *field, size_t index)
{
    size_t before = strlen(json->where), room = sizeof json->where - before;
    const char *dot = before > 0 ? "." : "";
    if (index == SIZE_MAX)
        (void)snprintf(json->where + before, room, "%s%s", dot, field);
    else
        (void)snprintf(json->where + before, room, "%s%s[%zu]", dot, field, index);
    return before;
}

void dp_manifest_json_leave(struct dp_manifest_json *json, size_t before)
{
    if (json->status == DP_OK)
        json->where[before] = '\0';
}

static const json_t *get(struct dp_manifest_json *json, const json_t *object, const char *field)
{
    return json->status == DP_OK ? json_object_get(object, field) : NULL;
}

/* A count above 2^63 - 1 is a text (common/base/json.h). */
static bool parse_decimal(const char *text, uint64_t *out)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t value = 0;
    if (digits == 0 || text[digits] || (digits > 1 && text[0] == '0'))
        return false;
    for (const char *at = text; *at; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

uint64_t dp_manifest_json_u64(struct dp_manifest_json *json, const json_t *object, const char *field,
                              uint64_t max)
{
    const json_t *value = get(json, object, field);
    uint64_t number = 0;
    if (json->status != DP_OK)
        return 0;
    bool good = json_is_integer(value) && json_integer_value(value) >= 0;
    if (good)
        number = (uint64_t)json_integer_value(value);
    else
        good = json_is_string(value) && parse_decimal(json_string_value(value), &number);
    if (good && number <= max)
        return number;
    char what[64];
    (void)snprintf(what, sizeof what, "a number from 0 to %" PRIu64, max);
    (void)dp_manifest_json_fail(json, field, what);
    return 0;
}

bool dp_manifest_json_is_hex(const char *text, size_t digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

uint64_t dp_manifest_json_hex(struct dp_manifest_json *json, const json_t *object, const char *field)
{
    const json_t *value = get(json, object, field);
    if (json->status != DP_OK)
        return 0;
    if (json_is_string(value) && dp_manifest_json_is_hex(json_string_value(value), 16))
        return strtoull(json_string_value(value), NULL, 16);
    (void)dp_manifest_json_fail(json, field, "16 hex digits");
    return 0;
}

const char *dp_manifest_json_text(struct dp_manifest_json *json, const json_t *object, const char *field,
                                  size_t bytes_max)
{
    const json_t *value = get(json, object, field);
    if (json->status != DP_OK)
        return "";
    size_t bytes = json_is_string(value) ? json_string_length(value) : 0;
    if (bytes > 0 && bytes <= bytes_max && strlen(json_string_value(value)) == bytes)
        return json_string_value(value);
    char what[64];
    (void)snprintf(what, sizeof what, "a text of 1 to %zu bytes", bytes_max);
    (void)dp_manifest_json_fail(json, field, what);
    return "";
}

const json_t *dp_manifest_json_array(struct dp_manifest_json *json, const json_t *object, const char *field,
                                     size_t count_max)
{
    const json_t *value = get(json, object, field);
    if (json->status != DP_OK)
        return NULL;
    if (json_is_array(value) && json_array_size(value) <= count_max)
        return value;
    char what[64];
    (void)snprintf(what, sizeof what, "a list of at most %zu", count_max);
    (void)dp_manifest_json_fail(json, field, what);
    return NULL;
}

const json_t *dp_manifest_json_object(struct dp_manifest_json *json, const json_t *object, const char *field)
{
    const json_t *value = get(json, object, field);
    if (json->status == DP_OK && !json_is_object(value))
        (void)dp_manifest_json_fail(json, field, "an object");
    return json->status == DP_OK ? value : NULL;
}

char *dp_manifest_json_copy(struct dp_manifest_json *json, const char *text)
{
    char *copy = json->status == DP_OK ? strdup(text) : NULL;
    if (!copy && json->status == DP_OK)
        json->status = dp_fail(json->err, DP_NOMEM, "no memory for a manifest");
    return copy;
}

bool dp_manifest_json_sum(const json_t *object, char text[DP_CHECKSUM_TEXT])
{
    struct dp_checksum sum;
    json_t *rest = json_copy((json_t *)(uintptr_t)object);
    if (rest)
        (void)json_object_del(rest, "checksum");
    char *dump = rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(rest);
    if (!dump)
        return false;
    dp_checksum_begin(&sum);
    dp_checksum_put(&sum, dump, strlen(dump));
    dp_checksum_end(&sum, text);
    free(dump);
    return true;
}

bool dp_manifest_json_seal(json_t *object)
{
    char text[DP_CHECKSUM_TEXT];
    return dp_manifest_json_sum(object, text) &&
           json_object_set_new(object, "checksum", json_string(text)) == 0;
}

void dp_manifest_json_put_hex(json_t *object, const char *field, uint64_t value)
{
    char text[17];
    (void)snprintf(text, sizeof text, "%016" PRIx64, value);
    json_object_set_new(object, field, json_string(text));
}
