/* Manifest JSON: fields of a manifest's objects, taken and checked. Private to the room.
 * Use       After the first field that is wrong every take gives 0 and changes nothing: check `status` at the end.
 * Where     The text names the field ("shards[2].files[0].bytes") and its expected value.
 * Memory    Texts are copied to the heap. */
#ifndef DP_CHECKPOINT_MANIFEST_JSON_H
#define DP_CHECKPOINT_MANIFEST_JSON_H

#include "common/base/json.h"
#include "server/checkpoint/checksum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_manifest_json {
    enum dp_status status;
    struct dp_error *err;
    char where[120]; /* the object that is being read: "shards[2].tail", or empty */
};

enum dp_status dp_manifest_json_fail(struct dp_manifest_json *json, const char *field, const char *what);
/* Goes into an object and back: enter returns what to give to leave. */
size_t dp_manifest_json_enter(struct dp_manifest_json *json, const char *field,
                              size_t index); /* SIZE_MAX: no index */
void dp_manifest_json_leave(struct dp_manifest_json *json, size_t before);

uint64_t dp_manifest_json_u64(struct dp_manifest_json *json, const json_t *object, const char *field,
                              uint64_t max);
/* 16 hex digits. */
uint64_t dp_manifest_json_hex(struct dp_manifest_json *json, const json_t *object, const char *field);
/* Not empty, of at most bytes_max. Borrowed from the object. */
const char *dp_manifest_json_text(struct dp_manifest_json *json, const json_t *object, const char *field,
                                  size_t bytes_max);
const json_t *dp_manifest_json_array(struct dp_manifest_json *json, const json_t *object, const char *field,
                                     size_t count_max);
const json_t *dp_manifest_json_object(struct dp_manifest_json *json, const json_t *object, const char *field);
/* Heap. */
char *dp_manifest_json_copy(struct dp_manifest_json *json, const char *text);
/* Whether all of text is lower-case hex digits, so many. */
bool dp_manifest_json_is_hex(const char *text, size_t digits);

/* The checksum of the object without its field "checksum": of its compact text with sorted keys. false: out of memory. */
bool dp_manifest_json_sum(const json_t *object, char text[DP_CHECKSUM_TEXT]);
/* Sets that field. */
bool dp_manifest_json_seal(json_t *object);

void dp_manifest_json_put_hex(json_t *object, const char *field, uint64_t value);

#endif
