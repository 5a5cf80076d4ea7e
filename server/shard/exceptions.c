#include "server/shard/exceptions.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <string.h>

/* The ranges of one push, and the first of them that does not end below the key that was asked for last. */
struct passing {
    const struct dp_push_exception *has;
    uint32_t count, at;
};

/* Keys ascend. */
static bool has_key(struct passing *p, uint64_t mixed)
{
    while (p->at < p->count && p->has[p->at].has.last < mixed)
        p->at++;
    return p->at < p->count && dp_range_has(p->has[p->at].has, mixed);
}

static uint64_t key_of(const struct dp_section *section, uint32_t row)
{
    return dp_load_u64le((const char *)section->keys + (size_t)row * 8);
}

static uint32_t count_left(struct passing p, const struct dp_section *section)
{
    uint32_t left = 0;
    for (uint32_t row = 0; row < section->rows; row++)
        left += !has_key(&p, key_of(section, row));
    return left;
}

/* frame: keys, values. */
static bool copy_left(struct passing p, struct dp_section *section, uint32_t left, struct dp_frame frame[2])
{
    size_t each = section->value_bytes / section->rows;
    frame[0] = dp_frame_new((size_t)left * 8);
    frame[1] = dp_frame_new(left * each);
    if (!frame[0].data || !frame[1].data)
        return false;
    uint32_t to = 0;
    for (uint32_t row = 0; row < section->rows; row++) {
        if (has_key(&p, key_of(section, row)))
            continue;
        memcpy((char *)frame[0].data + (size_t)to * 8, (const char *)section->keys + (size_t)row * 8, 8);
        memcpy((char *)frame[1].data + to * each, (const char *)section->values + row * each, each);
        to++;
    }
    DP_ASSERT(to == left);
    section->keys = frame[0].data;
    section->values = frame[1].data;
    section->value_bytes = left * each;
    section->rows = left;
    return true;
}

/* The frames that it has, and room for two more of each section. */
static struct dp_message *larger(const struct dp_message *message, uint32_t sections)
{
    struct dp_message *out = dp_message_new(message->frames + 2 * sections);
    for (uint32_t i = 0; out && i < message->frames; i++)
        dp_message_add(out, message->frame[i]);
    return out;
}

/* Its frames are another message's. */
static void drop_list(struct dp_message **message)
{
    if (*message)
        (*message)->frames = 0;
    dp_message_free(message);
}

enum dp_status dp_exceptions_pass_over(const struct dp_push_ids *ids, struct dp_waiting *waiting,
                                       bool *changed, struct dp_error *err)
{
    struct dp_request *request = &waiting->request;
    struct passing p = {0};
    *changed = false;
    p.has = dp_push_exceptions_find(dp_push_ids_exceptions(ids), request->stream, request->number, &p.count);
    if (!p.has)
        return DP_OK;
    struct dp_section section[DP_SECTIONS_MAX];
    struct dp_frame frame[2 * DP_SECTIONS_MAX] = {{0}};
    struct dp_message *message = larger(waiting->message, request->sections);
    bool copied = message != NULL;
    uint32_t sections = 0, frames = 0;
    for (uint32_t s = 0; s < request->sections && copied; s++) {
        uint32_t left = count_left(p, &request->section[s]);
        section[sections] = request->section[s];
        if (left > 0 && left < section[sections].rows) {
            copied = copy_left(p, &section[sections], left, &frame[frames]);
            frames += 2;
        }
        sections += left > 0;
    }
    if (!copied) {
        for (uint32_t i = 0; i < frames; i++)
            dp_frame_release(&frame[i]);
        drop_list(&message);
        return dp_fail(err, DP_NOMEM, "no memory for the rest of push %" PRIu64 " of stream %016" PRIx64,
                       request->number, request->stream);
    }
    for (uint32_t i = 0; i < frames; i++)
        dp_message_add(message, frame[i]);
    drop_list(&waiting->message);
    waiting->message = message;
    memcpy(request->section, section, sections * sizeof section[0]);
    request->sections = sections;
    *changed = true;
    return DP_OK;
}
