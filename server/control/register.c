/* The order of a set: build the new item -> copy the list with it, without dropped runs -> write the file ->
 * adopt the list. Only the last step changes what a get shows. */
#include "server/control/register.h"

#include "common/base/search.h"
#include "common/wire/limits.h"
#include "server/control/register_file.h"
#include "server/control/stores.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Servers register their stores in this value before they serve: without space for it, none could start. */
#define KEPT_FOR DP_STORES_NAME
/* The most bytes it can take in the file. */
#define KEPT_BYTES (24u + 8u * DP_REGISTER_NONCES_MAX + sizeof KEPT_FOR + DP_REGISTER_VALUE_BYTES_MAX)

struct dp_control_register {
    struct dp_disk disk;
    bool read_only;
    uint64_t changes; /* since the opening */
    struct dp_control_register_content content;
};

uint64_t dp_control_register_run_of(const char *name)
{
    uint64_t run = 0;
    if (strncmp(name, "run/", 4) != 0 || name[4] < '1' || name[4] > '9')
        return 0;
    for (name += 4; *name >= '0' && *name <= '9'; name++) {
        if (run > UINT32_MAX)
            return 0;
        run = run * 10 + (uint64_t)(*name - '0');
    }
    return *name == '/' && run <= UINT32_MAX ? run : 0;
}

static bool is_below(const void *item, const void *name)
{
    return strcmp((*(struct dp_control_register_item *const *)item)->name, name) < 0;
}

static uint32_t place_of(const struct dp_control_register_content *content, const char *name)
{
    return (uint32_t)dp_lower_bound(content->item, content->count, sizeof(void *), name, is_below);
}

static struct dp_control_register_item *find(const struct dp_control_register_content *content,
                                             const char *name)
{
    uint32_t at = place_of(content, name);
    return at < content->count && strcmp(content->item[at]->name, name) == 0 ? content->item[at] : NULL;
}

static void check_holds(const struct dp_control_register *values)
{
    const struct dp_control_register_content *content = &values->content;
    DP_ASSERT(content->count <= DP_REGISTER_VALUES_MAX && content->count <= content->capacity);
    DP_ASSERT(dp_control_register_file_bytes(content) <= DP_REGISTER_BYTES_MAX);
    for (uint32_t i = 0; i < content->count; i++) {
        const struct dp_control_register_item *item = content->item[i];
        uint64_t run = dp_control_register_run_of(item->name);
        DP_ASSERT(i == 0 || strcmp(content->item[i - 1]->name, item->name) < 0);
        DP_ASSERT(item->version > 0);
        DP_ASSERT(item->nonces ==
                  (item->version < DP_REGISTER_NONCES_MAX ? item->version : DP_REGISTER_NONCES_MAX));
        DP_ASSERT(run == 0 || run > content->gone_run);
    }
}

/* ---- opening */

static enum dp_status make(struct dp_control_register *values,
                           const struct dp_control_register_options *options, struct dp_error *err)
{
    DP_ASSERT(options->new_id != 0);
    values->content.id = options->new_id;
    return dp_control_register_file_write(&values->disk, &values->content, err);
}

/* The reader of the file knows no runs, so this is checked here. */
static enum dp_status check_runs(const struct dp_control_register_content *content, struct dp_error *err)
{
    for (uint32_t i = 0; i < content->count; i++) {
        uint64_t run = dp_control_register_run_of(content->item[i]->name);
        if (run > 0 && run <= content->gone_run)
            return dp_fail(
                err, DP_CORRUPT,
                "file '" DP_REGISTER_FILE
                "' is damaged ('%s' belongs to a run whose values were dropped): restore it from a "
                "copy, or restore a checkpoint (downpour restore --overwrite)",
                content->item[i]->name);
    }
    return DP_OK;
}

enum dp_status dp_control_register_open(const struct dp_control_register_options *options,
                                        struct dp_control_register **out, bool *made, struct dp_error *err)
{
    struct dp_control_register *values = calloc(1, sizeof *values);
    struct dp_error absent = {0};
    *out = NULL;
    *made = false;
    if (!values)
        return dp_fail(err, DP_NOMEM, "no memory for the register");
    values->disk = *options->disk;
    values->read_only = options->read_only;
    enum dp_status st =
        dp_control_register_file_read(&values->disk, values->read_only, &values->content, &absent);
    if (st == DP_NOT_FOUND && options->read_only) {
        st = DP_OK;
    } else if (st == DP_NOT_FOUND && options->create) {
        st = make(values, options, err);
        *made = st == DP_OK;
    } else if (st == DP_OK) {
        st = check_runs(&values->content, err);
    } else {
        *err = absent;
    }
    if (st != DP_OK) {
        dp_control_register_close(&values);
        return st;
    }
    check_holds(values);
    *out = values;
    return DP_OK;
}

void dp_control_register_close(struct dp_control_register **values)
{
    if (*values)
        dp_control_register_content_clear(&(*values)->content);
    free(*values);
    *values = NULL;
}

uint64_t dp_control_register_id(const struct dp_control_register *values)
{
    return values->content.id;
}

/* ---- getting */

static void fill(const struct dp_control_register_item *item, struct dp_control_register_entry *out)
{
    out->version = item ? item->version : 0;
    out->bytes = item ? item->bytes : NULL;
    out->size = item ? item->size : 0;
}

static enum dp_status check_run(const struct dp_control_register *values, const char *name,
                                struct dp_error *err)
{
    uint64_t run = dp_control_register_run_of(name);
    if (run == 0 || run > values->content.gone_run)
        return DP_OK;
    return dp_fail(err, DP_TOO_OLD,
                   "'%s': the register has dropped the values of runs up to %" PRIu64
                   " to make space for newer runs; use a higher run number",
                   name, values->content.gone_run);
}

enum dp_status dp_control_register_get(const struct dp_control_register *values, const char *name,
                                       struct dp_control_register_entry *out, struct dp_error *err)
{
    *out = (struct dp_control_register_entry){0};
    enum dp_status st = check_run(values, name, err);
    if (st == DP_OK)
        fill(find(&values->content, name), out);
    return st;
}

/* ---- setting */

/* The smallest and the greatest run that have values; 0: there are none. */
static void runs_of(const struct dp_control_register_content *content, uint64_t *oldest, uint64_t *newest)
{
    *oldest = *newest = 0;
    for (uint32_t i = 0; i < content->count; i++) {
        uint64_t run = dp_control_register_run_of(content->item[i]->name);
        if (run > 0 && (*oldest == 0 || run < *oldest))
            *oldest = run;
        *newest = run > *newest ? run : *newest;
    }
}

static void drop_run(struct dp_control_register_content *content, uint64_t run)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < content->count; i++)
        if (dp_control_register_run_of(content->item[i]->name) != run)
            content->item[kept++] = content->item[i];
    DP_ASSERT(kept < content->count && run > content->gone_run);
    content->count = kept;
    content->gone_run = run;
}

/* Whether the content is within the bounds, with space left for the largest value of KEPT_FOR. Only a set of
 * that value may use the reserve. */
static bool fits(const struct dp_control_register_content *content, const char *name)
{
    const struct dp_control_register_item *kept = find(content, KEPT_FOR);
    size_t bytes = dp_control_register_file_bytes(content), count = content->count;
    if (strcmp(name, KEPT_FOR) != 0) {
        bytes += KEPT_BYTES - (kept ? dp_control_register_item_bytes(kept) : 0);
        count += kept ? 0 : 1;
    }
    return count <= DP_REGISTER_VALUES_MAX && bytes <= DP_REGISTER_BYTES_MAX;
}

/* Drops old runs from `next`, a copy of the list, until it is within the bounds. */
static enum dp_status drop_old_runs(struct dp_control_register_content *next, const char *name,
                                    struct dp_error *err)
{
    while (!fits(next, name)) {
        uint64_t oldest, newest, own = dp_control_register_run_of(name);
        runs_of(next, &oldest, &newest);
        if (oldest == 0 || oldest >= (own > 0 ? own : newest))
            return dp_fail(err, DP_FULL,
                           "register value '%s': the register is full (%u values and %u bytes at most) and "
                           "holds no values of an older run that could be dropped",
                           name, DP_REGISTER_VALUES_MAX, DP_REGISTER_BYTES_MAX);
        drop_run(next, oldest);
    }
    return DP_OK;
}

/* Makes the version that follows `old`, or the first one if old is NULL. */
static struct dp_control_register_item *next_item(const struct dp_control_register_item *old,
                                                  const struct dp_control_register_change *change)
{
    struct dp_control_register_item *item =
        dp_control_register_item_new(change->name, strlen(change->name), change->bytes, change->size);
    if (!item)
        return NULL;
    item->version = change->expected + 1;
    if (old) {
        uint32_t kept = old->nonces < DP_REGISTER_NONCES_MAX ? old->nonces : DP_REGISTER_NONCES_MAX - 1;
        memcpy(item->nonce, old->nonce + old->nonces - kept, kept * sizeof item->nonce[0]);
        item->nonces = kept;
    }
    item->nonce[item->nonces++] = change->nonce;
    return item;
}

/* Copies the list, with the item in its place. */
static bool copy_with(const struct dp_control_register_content *content,
                      struct dp_control_register_item *item, struct dp_control_register_content *out)
{
    uint32_t at = place_of(content, item->name);
    uint32_t behind = at + (find(content, item->name) != NULL);
    *out = *content;
    out->capacity = content->count + 1;
    out->item = malloc(out->capacity * sizeof(struct dp_control_register_item *));
    if (!out->item)
        return false;
    if (at > 0)
        memcpy(out->item, content->item, at * sizeof(struct dp_control_register_item *));
    out->item[at] = item;
    if (content->count > behind)
        memcpy(out->item + at + 1, content->item + behind,
               (content->count - behind) * sizeof(struct dp_control_register_item *));
    out->count = at + 1 + content->count - behind;
    return true;
}

/* Frees the items that are not in `next`. */
static void adopt(struct dp_control_register *values, const struct dp_control_register_content *next)
{
    struct dp_control_register_content *old = &values->content;
    for (uint32_t i = 0; i < old->count; i++)
        if (find(next, old->item[i]->name) != old->item[i])
            free(old->item[i]);
    free(old->item);
    *old = *next;
    values->changes++;
    check_holds(values);
}

static enum dp_status store(struct dp_control_register *values, const struct dp_control_register_item *old,
                            const struct dp_control_register_change *change, struct dp_error *err)
{
    struct dp_control_register_content next = {0};
    struct dp_control_register_item *item = next_item(old, change);
    enum dp_status st = DP_OK;
    if (!item || !copy_with(&values->content, item, &next))
        st = dp_fail(err, DP_NOMEM, "no memory for register value '%s' of %zu bytes", change->name,
                     change->size);
    if (st == DP_OK)
        st = drop_old_runs(&next, change->name, err);
    if (st == DP_OK)
        st = dp_control_register_file_write(&values->disk, &next, err);
    if (st == DP_OK) {
        adopt(values, &next);
        return DP_OK;
    }
    free(next.item);
    free(item);
    return st;
}

/* The value is past the expected version: finds out whether it was this set that made the next one. */
static enum dp_status recognise(const struct dp_control_register_item *item,
                                const struct dp_control_register_change *change,
                                struct dp_control_register_entry *out, struct dp_error *err)
{
    uint64_t back = item->version - (change->expected + 1);
    if (back >= item->nonces)
        return dp_fail(err, DP_TOO_OLD,
                       "'%s' is at version %" PRIu64 "; it is no longer known whether this set made version "
                       "%" PRIu64 ": read the value and try again",
                       change->name, item->version, change->expected + 1);
    out->won = item->nonce[item->nonces - 1 - back] == change->nonce;
    return DP_OK;
}

enum dp_status dp_control_register_set(struct dp_control_register *values,
                                       const struct dp_control_register_change *change,
                                       struct dp_control_register_entry *out, struct dp_error *err)
{
    *out = (struct dp_control_register_entry){0};
    DP_ASSERT(change->nonce != 0 && change->expected < UINT64_MAX);
    DP_ASSERT(change->name[0] && change->size <= DP_REGISTER_VALUE_BYTES_MAX);
    enum dp_status st = check_run(values, change->name, err);
    if (st == DP_OK && values->read_only)
        st = dp_fail(err, DP_UNSUPPORTED, "'%s' cannot be set: this server was started with --read-only",
                     change->name);
    if (st != DP_OK)
        return st;
    const struct dp_control_register_item *item = find(&values->content, change->name);
    uint64_t version = item ? item->version : 0;
    if (version > change->expected) {
        st = recognise(item, change, out, err);
    } else if (version < change->expected) {
        /* Not an answer "not won": a resend may arrive once the value has reached the expected version. */
        st = dp_fail(err, DP_NOT_FOUND,
                     "'%s' is at version %" PRIu64 " and has never been at %" PRIu64
                     ": is this an older copy of the register?",
                     change->name, version, change->expected);
    } else {
        st = store(values, item, change, err);
        item = find(&values->content, change->name);
        out->won = st == DP_OK;
        DP_ASSERT((item ? item->version : 0) == change->expected + out->won);
    }
    fill(item, out);
    return st;
}

void dp_control_register_measure(const struct dp_control_register *values, bool (*counts)(const char *name),
                                 const char *but, size_t *bytes, uint32_t *count)
{
    const struct dp_control_register_content *content = &values->content;
    *bytes = *count = 0;
    for (uint32_t i = 0; i < content->count; i++) {
        const struct dp_control_register_item *item = content->item[i];
        if (strcmp(item->name, but) == 0 || !counts(item->name))
            continue;
        *bytes += dp_control_register_item_bytes(item);
        (*count)++;
    }
}

enum dp_status dp_control_register_copy(const struct dp_control_register *values, void **bytes, size_t *size,
                                        uint64_t *changes, struct dp_error *err)
{
    *bytes = NULL;
    *size = dp_control_register_file_bytes(&values->content);
    *changes = values->changes + 1;
    if (values->content.id == 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "there is no register, and this server was started with --read-only");
    *bytes = dp_control_register_file_pack(&values->content);
    return *bytes ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a copy of the register");
}
