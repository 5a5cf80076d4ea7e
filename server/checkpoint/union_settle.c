/* Which shard has a push: one that counted it, at its cut or behind it while it was waited for, has it for its whole range; one
 * that left it out has what its store had of it as an exception before, mostly nothing. */
#include "server/checkpoint/union_settle.h"

#include "common/base/bytes.h"
#include "server/durable/push_ids.h"
#include "server/durable/steps_mark.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct settling {
    struct dp_union *cut;
    const struct dp_union_lacking *left_out; /* may be NULL */
    struct dp_copy_push *push; /* that some shard has not, or not all of; ascending, each once */
    size_t count;
};

static int by_push(const void *a, const void *b)
{
    const struct dp_copy_push *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool has_push(const struct dp_union_lacking *list, const struct dp_copy_push *push)
{
    return list->count > 0 && bsearch(push, list->push, list->count, sizeof *push, by_push) != NULL;
}

static enum dp_status gather(struct settling *s, struct dp_error *err)
{
    size_t count = 0, once = 0;
    for (uint32_t i = 0; i < s->cut->shards; i++)
        count += s->cut->had[i].count + (s->left_out ? s->left_out[i].count : 0);
    s->push = malloc((count + 1) * sizeof *s->push);
    if (!s->push)
        return dp_fail(err, DP_NOMEM, "no memory for pushes that only some shards have");
    for (uint32_t i = 0; i < s->cut->shards; i++) {
        const struct dp_push_exceptions *had = &s->cut->had[i];
        for (uint32_t k = 0; k < had->count; k++)
            s->push[s->count++] = (struct dp_copy_push){had->one[k].stream, had->one[k].number};
        for (uint32_t k = 0; s->left_out && k < s->left_out[i].count; k++)
            s->push[s->count++] = s->left_out[i].push[k];
    }
    qsort(s->push, s->count, sizeof *s->push, by_push);
    for (size_t i = 0; i < s->count; i++)
        if (once == 0 || by_push(&s->push[once - 1], &s->push[i]) != 0)
            s->push[once++] = s->push[i];
    s->count = once;
    return DP_OK;
}

enum standing { IS_USED, IS_NEW, IS_FORGOTTEN };

static enum standing look(const struct dp_union *cut, const struct dp_copy_push *push)
{
    enum dp_status ignored;
    switch (dp_push_ids_look(cut->all, push->stream, push->number, &ignored)) {
    case DP_PUSH_REPEATED:
    case DP_PUSH_REFUSED:
        return IS_USED;
    case DP_PUSH_NEW:
    case DP_PUSH_ABOVE:
        return IS_NEW;
    case DP_PUSH_TOO_OLD:
        break;
    }
    return IS_FORGOTTEN;
}

static bool shard_has(const struct settling *s, uint32_t shard, const struct dp_copy_push *push,
                      enum standing standing)
{
    return standing == IS_USED && !(s->left_out && has_push(&s->left_out[shard], push));
}

static bool all_have(const struct settling *s, const struct dp_copy_push *push, enum standing standing)
{
    uint32_t shard = 0;
    while (shard < s->cut->shards && shard_has(s, shard, push, standing))
        shard++;
    return shard == s->cut->shards;
}

static enum dp_status add_ranges(const struct settling *s, const struct dp_copy_push *push,
                                 enum standing standing, struct dp_error *err)
{
    struct dp_union *cut = s->cut;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < cut->shards && st == DP_OK; i++) {
        const struct dp_push_exception own = {push->stream, push->number, dp_range_of_shard(i, cut->shards)};
        uint32_t count = 1;
        const struct dp_push_exception *has =
            shard_has(s, i, push, standing)
                ? &own
                : dp_push_exceptions_find(&cut->had[i], push->stream, push->number, &count);
        for (uint32_t k = 0; has && k < count && st == DP_OK; k++)
            st = dp_push_exceptions_append(&cut->exceptions, &has[k], err);
    }
    return st;
}

static enum dp_status find_exceptions(struct settling *s, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    dp_push_exceptions_clear(&s->cut->exceptions);
    for (size_t i = 0; i < s->count && st == DP_OK; i++) {
        enum standing standing = look(s->cut, &s->push[i]);
        if (standing != IS_FORGOTTEN && !all_have(s, &s->push[i], standing))
            st = add_ranges(s, &s->push[i], standing, err);
    }
    return st;
}

/* From the greatest down: a lower one that goes first would leave the others beyond its stream's window. */
static enum dp_status take_back(struct dp_union *cut, struct dp_error *err)
{
    for (uint32_t i = cut->exceptions.count; i > 0; i--) {
        const struct dp_push_exception *one = &cut->exceptions.one[i - 1];
        enum dp_status st = dp_push_ids_take_back(cut->all, one->stream, one->number);
        if (st != DP_OK)
            return dp_fail(err, st == DP_NOMEM ? st : DP_CORRUPT,
                           "push %" PRIu64 " of stream %016" PRIx64
                           " cannot be left out: the stream goes on beyond its window",
                           one->number, one->stream);
    }
    return DP_OK;
}

enum dp_status dp_union_settle(struct dp_union *cut, const struct dp_union_lacking *left_out,
                               struct dp_error *err)
{
    struct settling s = {.cut = cut, .left_out = left_out};
    enum dp_status st = gather(&s, err);
    if (st == DP_OK)
        st = find_exceptions(&s, err);
    if (st == DP_OK)
        st = take_back(cut, err);
    if (st == DP_OK) {
        free(cut->ids);
        cut->ids = dp_push_ids_pack(cut->all, &cut->ids_bytes);
        st = cut->ids ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for push ids");
    }
    free(s.push);
    return st;
}

/* ---- what shards say that they left out */

/* Behind a stream 0 there are steps. */
static size_t pushes_of(const struct dp_union_left_out *from)
{
    size_t count = 0;
    while (count < from->bytes / 16 && dp_load_u64le((const char *)from->pushes + count * 16) != 0)
        count++;
    return count;
}

static enum dp_status read_one(const struct dp_union *cut, uint32_t shard,
                               const struct dp_union_left_out *from, struct dp_union_lacking *out,
                               struct dp_error *err)
{
    size_t count = pushes_of(from);
    out->push = malloc((count + 1) * sizeof *out->push);
    if (!out->push)
        return dp_fail(err, DP_NOMEM, "no memory for pushes that only some shards have");
    bool is_right = (from->bytes % 16 == 0 || count < from->bytes / 16) && count <= cut->lacking[shard].count;
    for (size_t i = 0; is_right && i < count; i++) {
        const char *at = (const char *)from->pushes + i * 16;
        out->push[i] = (struct dp_copy_push){dp_load_u64le(at), dp_load_u64le(at + 8)};
        is_right = has_push(&cut->lacking[shard], &out->push[i]) &&
                   (i == 0 || by_push(&out->push[i - 1], &out->push[i]) < 0);
        out->count++;
    }
    return is_right ? DP_OK
                    : dp_fail(err, DP_CORRUPT,
                              "shard %" PRIu32 " left out what it was not asked for: %zu bytes of pushes",
                              shard, from->bytes);
}

/* What was left out of a step on one shard is not finished on any: a pull that needs the step waits until it is pushed again. One who
 * comes back from `start` on pushes nothing below it. */
static void lower(struct dp_steps_place *place, const struct dp_steps *all, const struct dp_steps *one)
{
    for (uint32_t rank = 0; rank < all->view.members; rank++) {
        uint64_t next = all->next[rank], start = all->start[rank];
        if (next > one->next[rank])
            next = one->next[rank] > start ? one->next[rank] : start;
        if (next < place[rank].next)
            place[rank].next = next;
    }
}

static enum dp_status read_steps(const void *bytes, size_t size, struct dp_steps **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? dp_steps_mark_unpack(bytes, size, *out, 0, err)
                : dp_fail(err, DP_NOMEM, "no memory for the steps of a cut");
}

static void free_steps(struct dp_steps **steps)
{
    if (*steps)
        dp_steps_clear(*steps);
    free(*steps);
    *steps = NULL;
}

static enum dp_status lower_by(const struct dp_steps *all, struct dp_steps_place *place, uint32_t shard,
                               const struct dp_union_left_out *from, struct dp_error *err)
{
    struct dp_steps *one = NULL;
    size_t at = (pushes_of(from) + 1) * 16;
    if (from->bytes <= at)
        return DP_OK;
    enum dp_status st = read_steps((const char *)from->pushes + at, from->bytes - at, &one, err);
    if (st != DP_OK)
        st = dp_wrap(err, st, "shard %" PRIu32, shard);
    else if (one->view.run == all->view.run && one->view.members == all->view.members)
        lower(place, all, one); /* else another run began meanwhile, and this one is over */
    free_steps(&one);
    return st;
}

static enum dp_status lower_steps(struct dp_union *cut, const struct dp_union_left_out *left_out,
                                  struct dp_error *err)
{
    struct dp_steps *all = NULL;
    struct dp_steps_place place[DP_MEMBERS_MAX];
    if (!cut->steps || cut->has_sync)
        return DP_OK;
    enum dp_status st = read_steps(cut->steps, cut->steps_bytes, &all, err);
    for (uint32_t rank = 0; st == DP_OK && rank < all->view.members; rank++)
        place[rank] = (struct dp_steps_place){all->next[rank], all->start[rank], all->former[rank]};
    for (uint32_t i = 0; i < cut->shards && st == DP_OK; i++)
        st = lower_by(all, place, i, &left_out[i], err);
    if (st == DP_OK) { /* of the same size */
        struct dp_view view = all->view;
        uint64_t open = all->open;
        memset(all, 0, sizeof *all);
        dp_steps_restore(all, &view, open, place, 0);
        DP_ASSERT(dp_steps_mark_bytes(all) == cut->steps_bytes);
        dp_steps_mark_pack(all, cut->steps);
    }
    free_steps(&all);
    return st;
}

enum dp_status dp_union_leave_out(struct dp_union *cut, const struct dp_union_left_out *left_out,
                                  struct dp_error *err)
{
    struct dp_union_lacking *list = calloc(cut->shards, sizeof *list);
    enum dp_status st =
        list ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for pushes that only some shards have");
    for (uint32_t i = 0; i < cut->shards && st == DP_OK; i++)
        st = read_one(cut, i, &left_out[i], &list[i], err);
    if (st == DP_OK)
        st = lower_steps(cut, left_out, err);
    if (st == DP_OK)
        st = dp_union_settle(cut, list, err);
    for (uint32_t i = 0; i < cut->shards && list; i++)
        free(list[i].push);
    free(list);
    return st;
}
