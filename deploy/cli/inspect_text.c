#include "deploy/cli/inspect_show.h"

#include "deploy/cli/progress.h"

#include "common/config/cluster.h"

#include <inttypes.h>
#include <stdio.h>

#define STREAMS_SHOWN 20u /* JSON has all */
#define REFUSED_SHOWN 20u

const char *dp_show_optimizer_name(const struct dp_optimizer_spec *optimizer)
{
    const char *name = dp_cluster_optimizer_name(optimizer);
    return name ? name : dp_optimizer_name(optimizer->kind);
}

static const char *number(uint64_t n, char text[32])
{
    return dp_cli_number((double)n, text, 32);
}

static void show_steps(const struct dp_inspect_view_steps *steps)
{
    char mode[DP_MODE_TEXT_BYTES];
    if (steps->run == 0)
        return;
    dp_mode_text(steps->mode, steps->slack, mode);
    printf("  members     %" PRIu32 " in run %" PRIu32 ", %s", steps->members, steps->run, mode);
    if (dp_mode_of(steps->mode)->by_step)
        printf(", step %" PRIu64 " is open", steps->open);
    printf("\n");
}

static void show_own(const struct dp_inspect_view *view)
{
    static const char *const meaning[] = {
        [DP_STORE_VIEW_NEW] = "nothing was ever stored in it",
        [DP_STORE_VIEW_CLEAN] = "closed cleanly, its rows are complete",
        [DP_STORE_VIEW_OPEN_JOURNALED] = "in use or killed: its journal has pushes that its rows lack",
        [DP_STORE_VIEW_OPEN] =
            "in use or killed, without a journal: pushes that were not written back are lost"};
    const struct dp_store_view_own *own = &view->own;
    printf("store %s\n", view->directory);
    if (!view->opened) {
        printf("  it could not be opened\n");
        return;
    }
    printf("  state       %s: %s\n", dp_store_view_state_name(own->state), meaning[own->state]);
    if (view->in_use)
        printf(
            "  in use      by process %d: rows are those last written back; the journal is being written\n",
            (int)view->in_use);
    if (own->state == DP_STORE_VIEW_NEW)
        return;
    printf("  format      %" PRIu32 "\n", own->format);
    if (own->id.id != 0)
        printf("  id          %08" PRIx32 ", of register %08" PRIx32 "\n", DP_STORE_ID_SHORT(own->id.id),
               DP_STORE_ID_SHORT(own->id.register_id));
    printf("  cluster     0x%016" PRIx64 ", generation %" PRIu64, own->cluster, own->id.generation);
    if (own->id.history != 0)
        printf(", history %016" PRIx64, own->id.history);
    printf("\n");
    printf("  range       0x%016" PRIx64 "..0x%016" PRIx64 " of mixed keys (%.4g%% of all)\n",
           own->range.first, own->range.last,
           ((double)(own->range.last - own->range.first) + 1) / 0x1p64 * 100);
    printf("  rows lsn    %" PRIu64 ": the rows have every push up to it\n", view->rows_lsn);
    show_steps(&view->steps);
}

static void show_tables(const struct dp_inspect_view *view)
{
    char rows[32], bytes[32];
    if (view->tables)
        printf("  %-24s %6s %9s %8s %13s %16s  %s\n", "table", "width", "optimizer", "init", "rows", "bytes",
               "lsn of its rows");
    for (size_t i = 0; i < view->tables; i++) {
        const struct dp_inspect_view_table *t = &view->table[i];
        printf("  %-24s %6" PRIu32 " %9s %8s %13s %16s  %" PRIu64 "..%" PRIu64 "\n", t->spec.name,
               t->spec.dim, dp_show_optimizer_name(&t->spec.optimizer), dp_init_name(t->spec.init.kind),
               number(t->rows, rows), number(t->bytes, bytes), t->first_lsn, t->last_lsn);
    }
    printf("  files       %" PRIu64 " of rows with %s bytes\n", view->row_files.count,
           number(view->row_files.bytes, bytes));
    if (view->unnamed_files)
        printf("  unnamed     %" PRIu64 " files *.sst that the manifest does not name: a crash left them, "
               "and the next start removes them\n",
               view->unnamed_files);
}

static void show_journal(const struct dp_inspect_view *view)
{
    const struct dp_inspect_journal *j = &view->journal;
    char bytes[32], used[32];
    if (!j->present) {
        printf("  journal     none%s%s\n", view->journal_refused.status ? ": " : "",
               view->journal_refused.status ? view->journal_refused.text : "");
        return;
    }
    if (view->segments == 0 && view->journal_refused.status == DP_OK) {
        printf("  journal     none: the rows have all pushes that its opening %" PRIu64 " took\n",
               view->incarnation);
        return;
    }
    printf("  journal     opening %" PRIu64 ", ends with lsn %" PRIu64 ", known durable up to %" PRIu64 "\n",
           j->incarnation, j->last_lsn, j->durable_lsn);
    printf("    %-24s %8s %7s %13s %16s  %s\n", "segment", "state", "opening", "bytes", "used", "lsn");
    for (size_t i = 0; i < view->segments; i++) {
        const struct dp_inspect_segment *s = &view->segment[i].segment;
        printf("    %-24s %8s %7" PRIu64 " %13s %16s", view->segment[i].file,
               dp_inspect_segment_state_name(s->state), s->incarnation, number(s->bytes, bytes),
               s->used_bytes ? number(s->used_bytes, used) : "-");
        if (s->first_lsn > 0 && s->last_lsn >= s->first_lsn)
            printf("  %" PRIu64 "..%" PRIu64, s->first_lsn, s->last_lsn);
        printf("\n");
    }
    if (view->journal_refused.status != DP_OK) {
        printf("    %s: %s\n", view->in_use ? "not read, it is being written" : "refused",
               view->journal_refused.text);
        return;
    }
    printf("    to replay   %" PRIu64 " records, %s bytes: %" PRIu64 " pushes of %" PRIu64 " rows, %" PRIu64
           " refusals\n",
           j->replay_records, number(j->replay_bytes, bytes), view->replay_pushes, view->replay_rows,
           view->replay_refused);
    if (view->replay_kept || view->replay_closed)
        printf("                %" PRIu64 " of them kept for synchronous steps, of which %" PRIu64
               " were closed\n",
               view->replay_kept, view->replay_closed);
    if (j->cut.rest != DP_JOURNAL_REST_NONE) {
        char cut[DP_JOURNAL_CUT_TEXT];
        dp_journal_cut_text(&j->cut, cut);
        printf("    torn tail   %s\n", cut);
    }
    if (j->checked_records)
        printf("    checked     %" PRIu64 " records, %s bytes\n", j->checked_records,
               number(j->checked_bytes, bytes));
}

struct inspect_counting {
    uint64_t streams, refused;
};

static void show_stream(void *context, const struct dp_push_stream *s)
{
    struct inspect_counting *counting = context;
    if (counting->streams == 0)
        printf("  push numbers that are used, by run and worker or client (stream), as of the rows' lsn\n    "
               "%-18s %9s %14s %12s %10s\n",
               "stream", "kind", "all below", "used above", "holes");
    if (counting->streams < STREAMS_SHOWN)
        printf("    0x%016" PRIx64 " %9s %14" PRIu64 " %12" PRIu64 " %10" PRIu64 "\n",
               s->stream & ~DP_STREAM_TRAINING, s->stream & DP_STREAM_TRAINING ? "training" : "client",
               s->low, s->used_above, s->holes);
    counting->streams++;
}

static void show_refused(void *context, uint64_t stream, uint64_t refused, enum dp_status status)
{
    struct inspect_counting *counting = context;
    if (counting->refused == 0)
        printf("  refused\n");
    if (counting->refused < REFUSED_SHOWN)
        printf("    stream 0x%016" PRIx64 ", number %" PRIu64 ": %s\n", stream & ~DP_STREAM_TRAINING, refused,
               dp_status_name((int)status));
    counting->refused++;
}

static void show_streams(const struct dp_inspect_view *view)
{
    struct inspect_counting counting = {0};
    dp_push_ids_visit(view->ids, show_stream, show_refused, &counting);
    if (counting.streams > STREAMS_SHOWN)
        printf("    and %" PRIu64 " more (--json has all)\n", counting.streams - STREAMS_SHOWN);
    if (counting.refused > REFUSED_SHOWN)
        printf("    and %" PRIu64 " more refused (--json has all)\n", counting.refused - REFUSED_SHOWN);
    struct dp_push_floors floors = dp_push_ids_floors(view->ids);
    if (floors.clients)
        printf("  forgotten: client streams below 0x%016" PRIx64 " that are not listed are too old\n",
               floors.clients);
    if (floors.runs)
        printf("  forgotten: runs below %" PRIu64 " that are not listed are too old\n", floors.runs);
    if (view->streams)
        printf("  next stream %" PRIu64 " at the earliest\n", view->streams);
}

static void show_damage(const struct dp_inspect_view *view)
{
    for (size_t i = 0; i < view->damages && i < DP_INSPECT_DAMAGE_MAX; i++)
        printf("  DAMAGED     %s\n", view->damage[i].text);
    if (view->damages > DP_INSPECT_DAMAGE_MAX)
        printf("  DAMAGED     and %zu more places\n", view->damages - DP_INSPECT_DAMAGE_MAX);
}

void dp_show_text(const struct dp_show *show)
{
    size_t damages = 0;
    for (size_t i = 0; i < show->count; i++) {
        const struct dp_inspect_view *view = &show->views[i];
        show_own(view);
        if (view->opened && view->own.state != DP_STORE_VIEW_NEW) {
            show_tables(view);
            show_journal(view);
            if (show->all)
                show_streams(view);
        }
        show_damage(view);
        damages += view->damages;
    }
    if (show->verify && damages == 0)
        printf("verified: no damage\n");
    for (size_t i = 0; show->digest && i < show->sums; i++) {
        char text[DP_DIGEST_TEXT];
        dp_digest_text(&show->sum[i].digest, text);
        printf("digest %s %s %" PRIu64 " rows\n", text, show->sum[i].name, show->sum[i].digest.rows);
    }
    if (show->digest) {
        char text[DP_DIGEST_TEXT];
        struct dp_digest all = dp_digest_of_all(show->sum, show->sums);
        dp_digest_text(&all, text);
        printf("digest %s of all %" PRIu64 " rows\n", text, all.rows);
    }
}
