/* A key set: mix -> sort by mixed key (stable) -> merge equal ones. Nothing is allocated after its first
 * growth to the needed size.
 */
#include "common/client/keys_inner.h"

#include "common/base/search.h"
#include "common/model/mix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RADIX_BITS  11u
#define RADIX_SIZE  (1u << RADIX_BITS)
#define TOP_PASSES  3u /* digits of 33 upper bits: mixed keys rarely share them */
#define FULL_PASSES 6u
#define FEW_KEYS    48u
#define KEYS_MAX    (UINT32_MAX - 1u)
#define FIX_FACTOR  4u

enum dp_status dp_keys_new(struct dp_keys **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a key set");
}

static void free_arrays(struct dp_keys *keys)
{
    free(keys->own);
    free(keys->slots);
    free(keys->order);
    free(keys->starts);
    free(keys->place);
    free(keys->spare);
}

void dp_keys_free(struct dp_keys **keys)
{
    if (*keys)
        free_arrays(*keys);
    free(*keys);
    *keys = NULL;
}

static enum dp_status grow(struct dp_keys *keys, size_t n, struct dp_error *err)
{
    if (n <= keys->room)
        return DP_OK;
    size_t room = keys->room + keys->room / 2 < n ? n : keys->room + keys->room / 2;
    struct dp_keys wider = {.room = room};
    wider.own = malloc(room * sizeof *wider.own);
    wider.slots = malloc(room * sizeof *wider.slots);
    wider.order = malloc(room * sizeof *wider.order);
    wider.starts = malloc((room + 1) * sizeof *wider.starts);
    wider.place = malloc(room * sizeof *wider.place);
    wider.spare = malloc(room * sizeof *wider.spare);
    if (!wider.own || !wider.slots || !wider.order || !wider.starts || !wider.place || !wider.spare) {
        free_arrays(&wider);
        return dp_fail(err, DP_NOMEM, "no memory for %zu keys", n);
    }
    wider.version = keys->version;
    free_arrays(keys);
    *keys = wider;
    return DP_OK;
}

/* Sorts by insertion, stable; gives up (false) after `moves` moves, with the places still a permutation. */
static bool sort_by_insertion(struct dp_key_place *place, size_t n, size_t moves)
{
    for (size_t i = 1; i < n; i++) {
        struct dp_key_place p = place[i];
        size_t j = i;
        while (j > 0 && place[j - 1].mixed > p.mixed) {
            if (moves-- == 0) {
                place[j] = p;
                return false;
            }
            place[j] = place[j - 1];
            j--;
        }
        place[j] = p;
    }
    return true;
}

/* Stable counting passes over the digits from bit `low` upwards; swaps place and spare after each. */
static void sort_by_radix(struct dp_keys *keys, size_t n, unsigned low, unsigned passes)
{
    uint32_t count[RADIX_SIZE];
    for (unsigned pass = 0; pass < passes; pass++) {
        unsigned shift = low + pass * RADIX_BITS;
        memset(count, 0, sizeof count);
        for (size_t i = 0; i < n; i++)
            count[(keys->place[i].mixed >> shift) & (RADIX_SIZE - 1)]++;
        uint32_t sum = 0;
        for (size_t d = 0; d < RADIX_SIZE; d++) {
            uint32_t here = count[d];
            count[d] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            keys->spare[count[(keys->place[i].mixed >> shift) & (RADIX_SIZE - 1)]++] = keys->place[i];
        struct dp_key_place *swap = keys->place;
        keys->place = keys->spare;
        keys->spare = swap;
    }
}

static void restore_given_order(struct dp_keys *keys, const uint64_t *user_keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        keys->place[i] = (struct dp_key_place){.mixed = dp_mix(user_keys[i]), .at = (uint32_t)i};
}

static void sort_places(struct dp_keys *keys, const uint64_t *user_keys, size_t n)
{
    restore_given_order(keys, user_keys, n);
    if (n <= FEW_KEYS) {
        (void)sort_by_insertion(keys->place, n, SIZE_MAX);
        return;
    }
    /* Mixed keys are spread evenly, so their upper bits nearly sort them. Keys chosen to share those bits
     * must not cost n^2: past a few moves a key, all bits are sorted the plain way. */
    sort_by_radix(keys, n, 64 - TOP_PASSES * RADIX_BITS, TOP_PASSES);
    if (!sort_by_insertion(keys->place, n, FIX_FACTOR * n)) {
        restore_given_order(keys, user_keys, n);
        sort_by_radix(keys, n, 0, FULL_PASSES); /* 66 bits: a shift of 55 is the last */
    }
}

static void merge_equal(struct dp_keys *keys, size_t n)
{
    size_t distinct = 0;
    for (size_t j = 0; j < n; j++) {
        struct dp_key_place p = keys->place[j];
        if (distinct == 0 || keys->own[distinct - 1] != p.mixed) {
            keys->own[distinct] = p.mixed;
            keys->starts[distinct] = (uint32_t)j;
            distinct++;
        }
        keys->order[j] = p.at;
        keys->slots[p.at] = (uint32_t)(distinct - 1);
    }
    keys->starts[distinct] = (uint32_t)n;
    keys->count = n;
    keys->distinct = distinct;
    keys->mixed = keys->own;
    keys->lent = false;
    keys->version++;
}

enum dp_status dp_keys_set(struct dp_keys *keys, const uint64_t *user_keys, size_t n, struct dp_error *err)
{
    if (n > KEYS_MAX)
        return dp_fail(err, DP_ARGUMENT, "%zu keys in one set: at most %u", n, KEYS_MAX);
    enum dp_status st = grow(keys, n ? n : 1, err);
    if (st != DP_OK)
        return st;
    sort_places(keys, user_keys, n);
    merge_equal(keys, n);
    return DP_OK;
}

enum dp_status dp_keys_lend(struct dp_keys *keys, const uint64_t *mixed, size_t n, struct dp_error *err)
{
    if (n > KEYS_MAX)
        return dp_fail(err, DP_ARGUMENT, "%zu keys in one set: at most %u", n, KEYS_MAX);
    for (size_t i = 1; i < n; i++) {
        if (mixed[i - 1] >= mixed[i])
            return dp_fail(err, DP_ARGUMENT,
                           "the mixed keys are not strictly ascending at %zu (%" PRIu64 " after %" PRIu64
                           "): sort them by dp_mix and remove duplicates, or use dp_keys_set",
                           i, mixed[i], mixed[i - 1]);
    }
    keys->count = keys->distinct = n;
    keys->mixed = mixed;
    keys->lent = true;
    keys->version++;
    return DP_OK;
}

size_t dp_keys_count(const struct dp_keys *keys)
{
    return keys->count;
}

size_t dp_keys_distinct(const struct dp_keys *keys)
{
    return keys->distinct;
}

const uint64_t *dp_keys_mixed(const struct dp_keys *keys)
{
    return keys->mixed;
}

const uint32_t *dp_keys_slots(const struct dp_keys *keys)
{
    return keys->lent ? NULL : keys->slots;
}

size_t dp_keys_end(const struct dp_keys *keys, size_t from, uint64_t last)
{
    size_t rest = keys->distinct - from;
    return from + (last == UINT64_MAX ? rest : dp_lower_bound_u64(keys->mixed + from, rest, last + 1));
}
