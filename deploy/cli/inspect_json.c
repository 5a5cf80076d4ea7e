#include "deploy/cli/inspect_show.h"

#include "common/base/json.h"
#include "common/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* lsns, keys and cluster ids use all 64 bits, JSON's numbers in most readers 53: ids and mixed keys are hex texts. */
static json_t *hex(uint64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "0x%016" PRIx64, n);
    return json_string(text);
}

/* json_string takes UTF-8 only; paths are what the caller gave, and messages may end within a character. */
static json_t *text_of(const char *from)
{
    char *text = strdup(from);
    if (text)
        dp_text_clean(text);
    json_t *made = json_string(text ? text : "");
    free(text);
    return made;
}

static json_t *refusal_of(const struct dp_error *err)
{
    return json_pack("{s:s, s:i, s:o}", "status", dp_status_name((int)err->status), "number",
                     (int)err->status, "text", text_of(err->text));
}

static json_t *digest_of(const struct dp_digest *digest)
{
    char text[DP_DIGEST_TEXT];
    dp_digest_text(digest, text);
    return json_string(text);
}

static json_t *tables_of(const struct dp_show *show, const struct dp_inspect_view *view)
{
    json_t *list = json_array();
    for (size_t i = 0; i < view->tables; i++) {
        const struct dp_inspect_view_table *t = &view->table[i];
        json_t *one = json_pack(
            "{s:o, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", text_of(t->spec.name), "dim",
            (json_int_t)t->spec.dim, "optimizer", dp_show_optimizer_name(&t->spec.optimizer), "init",
            dp_init_name(t->spec.init.kind), "seed", hex(t->spec.seed), "rows", dp_json_u64(t->rows), "bytes",
            dp_json_u64(t->bytes), "first_lsn", dp_json_u64(t->first_lsn), "last_lsn",
            dp_json_u64(t->last_lsn), "rows_of_mark", dp_json_u64(t->marked_rows));
        if (show->digest)
            (void)json_object_set_new(one, "digest", digest_of(&t->digest));
        (void)json_array_append_new(list, one);
    }
    return list;
}

static json_t *files_of(const struct dp_inspect_view_files *files)
{
    return json_pack("{s:o, s:o, s:o}", "count", dp_json_u64(files->count), "bytes",
                     dp_json_u64(files->bytes), "entries", dp_json_u64(files->entries));
}

static json_t *cut_of(const struct dp_journal_cut *cut)
{
    static const char *const names[] = {"none", "unknown", "records"};
    char text[DP_JOURNAL_CUT_TEXT];
    dp_journal_cut_text(cut, text);
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "what", names[cut->rest], "text", text, "offset",
                     dp_json_u64(cut->offset), "bytes", dp_json_u64(cut->bytes), "lsn",
                     dp_json_u64(cut->lsn));
}

static json_t *journal_of(const struct dp_inspect_view *view)
{
    const struct dp_inspect_journal *j = &view->journal;
    json_t *segments = json_array();
    for (size_t i = 0; i < view->segments; i++) {
        const struct dp_inspect_segment *s = &view->segment[i].segment;
        (void)json_array_append_new(
            segments,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "file", view->segment[i].file, "state",
                      dp_inspect_segment_state_name(s->state), "opening", dp_json_u64(s->incarnation),
                      "first_lsn", dp_json_u64(s->first_lsn), "last_lsn", dp_json_u64(s->last_lsn), "bytes",
                      dp_json_u64(s->bytes), "used_bytes", dp_json_u64(s->used_bytes)));
    }
    json_t *replay =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "records", dp_json_u64(j->replay_records), "bytes",
                  dp_json_u64(j->replay_bytes), "pushes", dp_json_u64(view->replay_pushes), "rows",
                  dp_json_u64(view->replay_rows), "refusals", dp_json_u64(view->replay_refused), "kept",
                  dp_json_u64(view->replay_kept), "closed", dp_json_u64(view->replay_closed));
    json_t *journal = json_pack(
        "{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "present", (int)j->present, "opening",
        dp_json_u64(j->incarnation), "durable_lsn", dp_json_u64(j->durable_lsn), "last_lsn",
        dp_json_u64(j->last_lsn), "torn_bytes",
        dp_json_u64(j->cut.rest == DP_JOURNAL_REST_RECORDS ? j->cut.bytes : 0), "cut", cut_of(&j->cut),
        "checked_records", dp_json_u64(j->checked_records), "replay", replay, "segments", segments);
    if (view->journal_refused.status != DP_OK)
        (void)json_object_set_new(journal, "refused", text_of(view->journal_refused.text));
    return journal;
}

static void add_stream(void *context, const struct dp_push_stream *s)
{
    json_t *marks = context;
    (void)json_array_append_new(json_object_get(marks, "streams"),
                                json_pack("{s:o, s:o, s:o, s:o}", "stream", hex(s->stream), "low",
                                          dp_json_u64(s->low), "used_above", dp_json_u64(s->used_above),
                                          "holes", dp_json_u64(s->holes)));
}

static void add_refused(void *context, uint64_t stream, uint64_t number, enum dp_status status)
{
    json_t *marks = context;
    (void)json_array_append_new(json_object_get(marks, "refused"),
                                json_pack("{s:o, s:o, s:s}", "stream", hex(stream), "number",
                                          dp_json_u64(number), "status", dp_status_name((int)status)));
}

static json_t *steps_of(const struct dp_inspect_view_steps *steps)
{
    char mode[DP_MODE_TEXT_BYTES];
    dp_mode_text(steps->mode, steps->slack, mode);
    return json_pack("{s:I, s:I, s:s, s:o}", "run", (json_int_t)steps->run, "members",
                     (json_int_t)steps->members, "consistency", mode, "open_step", dp_json_u64(steps->open));
}

static json_t *view_of(const struct dp_show *show, const struct dp_inspect_view *view)
{
    json_t *damage = json_array();
    for (size_t i = 0; i < view->damages && i < DP_INSPECT_DAMAGE_MAX; i++)
        (void)json_array_append_new(damage, text_of(view->damage[i].text));
    json_t *one = json_pack("{s:o, s:b, s:b, s:o, s:o}", "directory", text_of(view->directory), "opened",
                            (int)view->opened, "clean", (int)dp_inspect_view_is_clean(view), "damages",
                            dp_json_u64(view->damages), "damage", damage);
    if (view->in_use)
        (void)json_object_set_new(one, "in_use_by", json_integer(view->in_use));
    if (!view->opened)
        return one;
    json_t *marks = json_pack("{s:[], s:[]}", "streams", "refused");
    dp_push_ids_visit(view->ids, add_stream, add_refused, marks);
    struct dp_push_floors floors = dp_push_ids_floors(view->ids);
    json_t *more = json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state",
        dp_store_view_state_name(view->own.state), "format", (json_int_t)view->own.format, "id",
        hex(view->own.id.id), "register", hex(view->own.id.register_id), "cluster", hex(view->own.cluster),
        "generation", dp_json_u64(view->own.id.generation), "history", hex(view->own.id.history),
        "first_mixed_key", hex(view->own.range.first), "last_mixed_key", hex(view->own.range.last),
        "rows_lsn", dp_json_u64(view->rows_lsn), "next_stream", dp_json_u64(view->streams), "streams_below",
        dp_json_u64(floors.clients), "runs_below", dp_json_u64(floors.runs), "row_files",
        files_of(&view->row_files), "unnamed_files", dp_json_u64(view->unnamed_files), "tables",
        tables_of(show, view), "journal", journal_of(view));
    (void)json_object_update(one, more);
    (void)json_object_update(one, marks);
    if (view->steps.run > 0)
        (void)json_object_set_new(one, "steps", steps_of(&view->steps));
    json_decref(more);
    json_decref(marks);
    return one;
}

static bool dump(json_t *all)
{
    bool written = all && json_dumpf(all, stdout, JSON_INDENT(2)) == 0 && fputc('\n', stdout) == '\n';
    json_decref(all);
    return written;
}

void dp_show_refusal_json(const struct dp_error *refused)
{
    (void)dump(json_pack("{s:[], s:o}", "stores", "refused", refusal_of(refused)));
}

enum dp_status dp_show_json(const struct dp_show *show, struct dp_error *err)
{
    json_t *stores = json_array(), *all = json_pack("{s:O}", "stores", stores);
    for (size_t i = 0; i < show->count; i++)
        (void)json_array_append_new(stores, view_of(show, &show->views[i]));
    json_decref(stores);
    if (show->digest) {
        json_t *tables = json_array();
        struct dp_digest sum = dp_digest_of_all(show->sum, show->sums);
        for (size_t i = 0; i < show->sums; i++)
            (void)json_array_append_new(
                tables, json_pack("{s:o, s:I, s:o, s:o}", "name", text_of(show->sum[i].name), "dim",
                                  (json_int_t)show->sum[i].dim, "rows", dp_json_u64(show->sum[i].digest.rows),
                                  "digest", digest_of(&show->sum[i].digest)));
        (void)json_object_set_new(all, "tables", tables);
        (void)json_object_set_new(all, "digest", digest_of(&sum));
    }
    if (show->refused->status != DP_OK)
        (void)json_object_set_new(all, "refused", refusal_of(show->refused));
    return dump(all) ? DP_OK : dp_fail(err, DP_IO, "cannot write to standard output");
}
