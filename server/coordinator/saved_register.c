#include "server/coordinator/saved_register.h"

#include "common/env/read_only_disk.h"
#include "server/control/register_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t find(const struct dp_control_register_content *in, const char *name)
{
    uint32_t at = 0;
    while (at < in->count && strcmp(in->item[at]->name, name) != 0)
        at++;
    return at;
}

/* How many epochs are judged. */
static uint32_t epochs_of(const struct dp_control_register_content *in, const char *name)
{
    uint32_t at = find(in, name);
    if (at == in->count)
        return 0;
    json_t *root = json_loadb((const char *)in->item[at]->bytes, in->item[at]->size, 0, NULL);
    json_int_t epoch = json_integer_value(json_object_get(root, "epoch"));
    json_decref(root);
    return epoch > 0 && epoch < UINT32_MAX ? (uint32_t)epoch : 0;
}

/* But for the value of that name. */
static bool are_same(const struct dp_control_register_content *a, const struct dp_control_register_content *b,
                     const char *but)
{
    uint32_t same = find(a, but) < a->count;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t at = find(b, a->item[i]->name);
        same += strcmp(a->item[i]->name, but) != 0 && at < b->count &&
                b->item[at]->version == a->item[i]->version;
    }
    return same == a->count && a->count - (find(a, but) < a->count) == b->count - (find(b, but) < b->count);
}

/* The value of that name in `to` becomes that of `from`, which gives it away; both have it or `from` has it not. */
static void take_value(struct dp_control_register_content *to, struct dp_control_register_content *from,
                       const char *name)
{
    uint32_t at = find(to, name), there = find(from, name);
    if (at == to->count)
        return;
    if (there < from->count) {
        struct dp_control_register_item *item = to->item[at];
        to->item[at] = from->item[there];
        from->item[there] = item;
        return;
    }
    free(to->item[at]);
    to->count--;
    memmove(&to->item[at], &to->item[at + 1], (to->count - at) * sizeof to->item[0]);
}

static enum dp_status choose(struct dp_control_register_content *before,
                             struct dp_control_register_content *after,
                             const struct dp_saved_register_position *position, bool strict,
                             struct dp_error *err)
{
    char name[64];
    (void)snprintf(name, sizeof name, "run/%" PRIu32 "/verdict", position->run);
    bool judges = find(after, name) < after->count;
    if (judges && epochs_of(before, name) < position->epoch)
        return dp_fail(err, DP_AGAIN, "an epoch began");
    if (strict && !are_same(before, after, name))
        return dp_fail(err, DP_AGAIN, "the register changed");
    take_value(after, before, name);
    return DP_OK;
}

enum dp_status dp_saved_register(const struct dp_register_value *before,
                                 const struct dp_register_value *after,
                                 const struct dp_saved_register_position *position, bool strict,
                                 struct dp_register_value *out, struct dp_error *err)
{
    struct dp_control_register_content first = {0}, then = {0};
    *out = (struct dp_register_value){.version = after->version, .register_id = after->register_id};
    enum dp_status st = dp_control_register_file_unpack(before->bytes, before->size, &first, err);
    if (st == DP_OK)
        st = dp_control_register_file_unpack(after->bytes, after->size, &then, err);
    if (st == DP_OK)
        st = choose(&first, &then, position, strict, err);
    if (st == DP_OK) {
        out->size = dp_control_register_file_bytes(&then);
        out->bytes = dp_control_register_file_pack(&then);
        st = out->bytes ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a register");
    }
    dp_control_register_content_clear(&first);
    dp_control_register_content_clear(&then);
    return st;
}

static bool have_same(const struct dp_control_register_content *a,
                      const struct dp_control_register_content *b, const char *name)
{
    const uint32_t i = find(a, name), k = find(b, name);
    if (i == a->count || k == b->count)
        return i == a->count && k == b->count;
    return a->item[i]->size == b->item[k]->size &&
           memcmp(a->item[i]->bytes, b->item[k]->bytes, a->item[i]->size) == 0;
}

bool dp_saved_register_has_runs(const char *checkpoint, const struct dp_register_value *of)
{
    struct dp_disk disk = {0};
    struct dp_control_register_content saved = {0}, now = {0};
    void *copy = malloc(of->size);
    bool same = copy && dp_read_only_disk_open(checkpoint, &disk, NULL) == DP_OK &&
                dp_control_register_file_read(&disk, true, &saved, NULL) == DP_OK;
    if (same) {
        memcpy(copy, of->bytes, of->size);
        same = dp_control_register_file_unpack(copy, of->size, &now, NULL) == DP_OK;
    }
    same = same && have_same(&saved, &now, "runs");
    dp_control_register_content_clear(&saved);
    dp_control_register_content_clear(&now);
    dp_disk_close(&disk);
    free(copy);
    return same;
}
