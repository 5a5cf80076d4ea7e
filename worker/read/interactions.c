#include "worker/read/interactions.h"

#include "common/base/hash.h"
#include "common/base/search.h"
#include "common/env/atomic_file.h"
#include "common/env/file_bytes.h"
#include "common/model/mix.h"
#include "worker/read/content.h"
#include "worker/read/pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC     UINT64_C(0x31746e4961447044) /* "DpDaInt1" */
#define HEAD      6u
#define ITEMS_MAX UINT64_C(0x7fffffff)

/* Of each part of the file: its size is a multiple of a word's. */
static uint64_t sum_of(uint64_t sum, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, (const char *)bytes + at, sizeof word);
        sum = dp_hash_mix(sum + word);
    }
    return sum;
}

static enum dp_status damaged(const char *path, struct dp_error *err)
{
    return dp_fail(
        err, DP_DATA,
        "'%s', the interactions of the data that was trained on, is damaged: bring it back; or remove "
        "it, and items that users met in earlier data count as not met",
        path);
}

static bool ascend(const uint64_t *at, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++)
        if (at[i - 1] >= at[i])
            return false;
    return true;
}

/* Whether its lists are what the file's head says. */
static bool fits(const struct dp_interactions *in)
{
    if (!ascend(in->user, in->users) || !ascend(in->item, in->items) || in->first[0] != 0 ||
        in->first[in->users] != in->count)
        return false;
    for (uint64_t u = 0; u < in->users; u++) {
        if (in->first[u] > in->first[u + 1] || in->first[u + 1] > in->count)
            return false;
        for (uint64_t i = in->first[u]; i < in->first[u + 1]; i++) {
            uint32_t item = in->code[i] & ~DP_INTERACTION_HELD;
            if (item >= in->items || (i > in->first[u] && item <= (in->code[i - 1] & ~DP_INTERACTION_HELD)))
                return false;
        }
    }
    return true;
}

static bool take(const uint64_t *head, struct dp_interactions *out)
{
    out->run = head[1];
    out->earlier = head[2] == 1;
    out->users = head[3];
    out->items = head[4];
    out->count = head[5];
    return head[0] == MAGIC && head[2] <= 1;
}

static bool take_all(size_t size, struct dp_interactions *out)
{
    const size_t word = sizeof(uint64_t), most = size / sizeof(uint32_t);
    uint64_t sum;
    if (size < (HEAD + 2) * word || !take((const uint64_t *)out->bytes, out) || out->users > most ||
        out->items > most || out->items > ITEMS_MAX || out->count > most ||
        size != (HEAD + 2 * out->users + 1 + out->items + 1) * word + out->count * sizeof *out->code)
        return false;
    out->user = (const uint64_t *)out->bytes + HEAD;
    out->item = out->user + out->users;
    out->first = out->item + out->items;
    out->code = (const uint32_t *)(out->first + out->users + 1);
    memcpy(&sum, out->bytes + size - word, word);
    return sum == sum_of(DP_HASH_BEGIN, out->bytes, size - word) && fits(out);
}

enum dp_status dp_interactions_read(const char *path, struct dp_interactions *out, struct dp_error *err)
{
    size_t size = 0;
    *out = (struct dp_interactions){0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return dp_fail(err, DP_NOT_FOUND, "there is no '%s'", path);
    enum dp_status st = dp_file_bytes_read(path, &out->bytes, &size, err);
    if (st == DP_OK && !take_all(size, out))
        st = damaged(path, err);
    if (st != DP_OK)
        dp_interactions_clear(out);
    return st;
}

void dp_interactions_clear(struct dp_interactions *in)
{
    free(in->bytes);
    *in = (struct dp_interactions){0};
}

bool dp_interactions_head(const char *path, struct dp_interactions *out)
{
    uint64_t head[HEAD];
    FILE *file = fopen(path, "re");
    *out = (struct dp_interactions){0};
    bool read = file && fread(head, sizeof head, 1, file) == 1 && take(head, out);
    if (file)
        (void)fclose(file);
    return read;
}

uint64_t dp_interactions_find(const struct dp_interactions *in, uint64_t user)
{
    size_t at = dp_lower_bound_u64(in->user, in->users, user);
    return at < in->users && in->user[at] == user ? at : in->users;
}

enum dp_status dp_interactions_write(const struct dp_interactions *in, const char *path, struct dp_error *err)
{
    struct dp_atomic_file file;
    const uint64_t head[HEAD] = {MAGIC, in->run, in->earlier, in->users, in->items, in->count};
    const struct {
        const void *at;
        size_t size;
    } part[] = {{head, sizeof head},
                {in->user, in->users * sizeof *in->user},
                {in->item, in->items * sizeof *in->item},
                {in->first, (in->users + 1) * sizeof *in->first},
                {in->code, in->count * sizeof *in->code}};
    uint64_t sum = DP_HASH_BEGIN;
    if (in->items > ITEMS_MAX)
        return dp_fail(err, DP_DATA, "'%s' holds the interactions with at most 2^31 - 1 items", path);
    enum dp_status st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        sum = sum_of(sum, part[i].at, part[i].size);
        (void)fwrite(part[i].at, 1, part[i].size, file.stream); /* commit reports a failure */
    }
    (void)fwrite(&sum, 1, sizeof sum, file.stream);
    return dp_atomic_file_commit(&file, err);
}

/* ---- of a data set */

/* The place among `few`, ascending once unmixed, of each key of `all`, which has them and more; NONE: it is
 * not there. */
#define NONE UINT32_MAX

static void place_all(const uint64_t *all, uint64_t count, const uint64_t *few, uint64_t few_count,
                      uint32_t *out)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool there = at < few_count && few[at] == all[i];
        out[i] = there ? (uint32_t)at++ : NONE;
    }
}

/* Marks those of `all` that are not in `trained`. place: of all's users and items there. Both ascend. */
static void mark_held(const struct dp_content *trained, const uint32_t *place, struct dp_interactions *of,
                      uint32_t *code)
{
    for (uint64_t u = 0; u < of->users; u++) {
        uint64_t at = 0, end = 0;
        if (place[u] != NONE) {
            at = trained->offsets[place[u]];
            end = trained->offsets[place[u] + 1];
        }
        for (uint64_t i = of->first[u]; i < of->first[u + 1]; i++) {
            bool there = at < end && trained->codes[at] == place[of->users + code[i]];
            at += there;
            code[i] |= there ? 0 : DP_INTERACTION_HELD;
        }
    }
}

enum dp_status dp_interactions_keep(const struct dp_content *trained, const struct dp_content *all,
                                    uint64_t run, bool earlier, const char *path, struct dp_error *err)
{
    struct dp_interactions of = {.run = run, .earlier = earlier};
    of.users = all->facts[DP_PAIRS_USERS];
    of.items = all->facts[DP_PAIRS_ITEMS];
    of.count = all->offsets[of.users] - all->offsets[0];
    uint64_t *numbers = calloc(2 * of.users + 1 + of.items, sizeof *numbers);
    uint32_t *codes = calloc(of.count + of.users + of.items + 1, sizeof *codes);
    enum dp_status st =
        numbers && codes ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " interactions", of.count);
    for (uint64_t i = 0; st == DP_OK && i < of.users + of.items; i++)
        numbers[i] = dp_unmix(all->keys[i]);
    for (uint64_t u = 0; st == DP_OK && u <= of.users; u++)
        numbers[of.users + of.items + u] = all->offsets[u] - all->offsets[0];
    if (st == DP_OK) {
        uint32_t *place = codes + of.count;
        of.user = numbers;
        of.item = numbers + of.users;
        of.first = of.item + of.items;
        of.code = codes;
        memcpy(codes, all->codes + all->offsets[0], of.count * sizeof *codes);
        place_all(all->keys, of.users, trained->keys, trained->facts[DP_PAIRS_USERS], place);
        place_all(all->keys + of.users, of.items, trained->keys + trained->facts[DP_PAIRS_USERS],
                  trained->facts[DP_PAIRS_ITEMS], place + of.users);
        mark_held(trained, place, &of, codes);
        st = dp_interactions_write(&of, path, err);
    }
    free(numbers);
    free(codes);
    return st;
}
