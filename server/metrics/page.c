#include "server/metrics/page.h"

#include "common/base/json.h"
#include "common/base/text.h"
#include "server/metrics/worker_notes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
    "content=\"5\">"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>"
    ":root{color-scheme:light dark}body{font:15px/1.4 system-ui,sans-serif;margin:1.5rem;max-width:75rem}"
    "h1{font-size:1.3rem}h2{font-size:1rem;margin-top:1.6rem}div{overflow-x:auto}"
    "table{border-collapse:collapse}th,td{padding:.25rem .7rem;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid "
    "#8884}th{font-weight:600}.l{text-align:left}.w{white-space:normal;min-width:12rem}"
    ".bad{color:#c22;font-weight:600}@media(prefers-color-scheme:dark){.bad{color:#f77}}"
    "</style>\n";

static void put_text(FILE *to, const char *text)
{
    for (const char *p = text; *p; p++) {
        static const char marks[] = "<>&\"'";
        static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
        const char *mark = strchr(marks, *p);
        if (mark)
            (void)fputs(names[mark - marks], to);
        else
            (void)fputc(*p, to);
    }
}

/* Three digits and a unit. */
static void put_number(FILE *to, double value, double step, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t at = 0;
    if (!isfinite(value)) {
        (void)fputs("<td>-</td>", to);
        return;
    }
    for (; value >= 0.9995 * step && at + 1 < sizeof prefixes / sizeof prefixes[0]; at++)
        value /= step;
    int digits = value == floor(value) ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)fprintf(to, "<td>%.*f%s%s%s</td>", digits, value, at || *unit ? " " : "", prefixes[at], unit);
}

static void put_cells(FILE *to, const char *const *titles, uint32_t left)
{
    (void)fputs("<div><table><tr>", to);
    for (uint32_t i = 0; titles[i]; i++)
        (void)fprintf(to, "<th%s>%s</th>", left >> i & 1 ? " class=\"l\"" : "", titles[i]);
    (void)fputs("</tr>\n", to);
}

static double counted(const struct dp_exporter_shard *shard, const char *name)
{
    return (double)dp_counter_value(shard->observed.counter, shard->observed.counters, name);
}

static void put_time(FILE *to, uint64_t s)
{
    (void)fprintf(to, "<td>%" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "</td>", s / 3600, s / 60 % 60, s % 60);
}

static void put_shard(FILE *to, uint32_t number, const struct dp_exporter_shard *shard)
{
    (void)fprintf(to, "<tr><td>%" PRIu32 "</td>", number);
    if (shard->since_s == 0) {
        (void)fputs("<td class=\"l bad\">not serving</td><td class=\"l\" colspan=\"9\">", to);
        put_text(to, shard->why.text);
        (void)fputs("</td></tr>\n", to);
        return;
    }
    double stale = counted(shard, "staleness_sum") / counted(shard, "staleness_pushes");
    (void)fputs("<td class=\"l\">serving</td>", to);
    put_time(to, (uint64_t)counted(shard, "up_ms") / 1000);
    put_number(to, counted(shard, "store_rows_about"), 1000, "");
    put_number(to, counted(shard, "pull_rows"), 1000, "");
    put_number(to, counted(shard, "push_rows"), 1000, "");
    put_number(to, stale, 1000, "");
    put_number(to, counted(shard, "cache_bytes"), 1000, "B");
    put_number(to, counted(shard, "journal_kept_bytes"), 1000, "B");
    put_number(to, counted(shard, "store_file_bytes"), 1000, "B");
    put_number(to, counted(shard, "store_disk_free_bytes"), 1000, "B");
    (void)fputs("</tr>\n", to);
}

static void put_worker(FILE *to, const struct dp_exporter_note *note)
{
    char awaited[256];
    const char *text = json_string_value(json_object_get(note->root, "awaited"));
    double done = dp_json_get_real(note->root, "examples") / dp_json_get_real(note->root, "examples_total");
    double loss = dp_json_get_real(note->root, "loss");
    (void)snprintf(awaited, sizeof awaited, "%s", text ? text : "");
    dp_text_mend_end(awaited);
    dp_text_clean(awaited);
    (void)fprintf(to, "<tr><td>%" PRIu32 "</td><td>%" PRIu32 "</td><td class=\"l\">%s</td>", note->run,
                  note->worker, awaited[0] ? "waiting" : dp_exporter_note_state(note));
    const uint64_t before = dp_json_get_u64(note->root, "first_epoch"); /* as `status` counts them */
    (void)fprintf(to, "<td>%" PRIu64 "/%" PRIu64 "</td>", before + dp_json_get_u64(note->root, "epoch"),
                  before + dp_json_get_u64(note->root, "epochs"));
    (void)fprintf(to, isfinite(done) ? "<td>%.0f%%</td>" : "<td>-</td>", 100 * done);
    put_number(to, dp_json_get_real(note->root, "examples_per_s"), 1000, "");
    put_number(to, dp_json_get_real(note->root, "staleness_mean"), 1000, "");
    (void)fprintf(to, isfinite(loss) ? "<td>%.5g</td>" : "<td>-</td>", loss);
    (void)fprintf(to, "<td>%.0f s</td><td class=\"l w\">", note->age_s);
    put_text(to, awaited);
    (void)fputs("</td></tr>\n", to);
}

static void put_workers(FILE *to, const struct dp_exporter_source *source)
{
    static const char *const titles[] = {"run",       "worker",     "state",     "epoch",
                                         "done",      "examples/s", "staleness", "loss",
                                         "last note", "waits for",  NULL};
    struct dp_exporter_notes notes;
    dp_exporter_notes_read(source, &notes);
    if (notes.count > 0) {
        (void)fputs("<h2>Workers</h2>\n", to);
        put_cells(to, titles, 1u << 2 | 1u << 9);
    }
    for (uint32_t i = 0; i < notes.count; i++)
        put_worker(to, &notes.note[i]);
    (void)fputs(notes.count > 0       ? "</table></div>\n"
                : source->server == 0 ? "<p>No worker has reported in the last 10 minutes.</p>\n"
                                      : "<p>Workers report to server 0: its page shows them.</p>\n",
                to);
    dp_exporter_notes_clear(&notes);
}

struct dp_document dp_document_page(const struct dp_exporter_source *source)
{
    static const char *const titles[] = {"shard",       "state",       "up",        "rows on disk",
                                         "rows pulled", "rows pushed", "staleness", "cache",
                                         "journal",     "on disk",     "disk free", NULL};
    struct dp_document answer;
    struct dp_exporter_shard *shard = dp_document_shards(source);
    FILE *text = shard ? dp_document_begin(&answer) : NULL;
    if (!text) {
        free(shard);
        return (struct dp_document){.status = 503};
    }
    (void)fprintf(text,
                  "%s<title>Downpour: server %" PRIu32 "</title></head><body>\n<h1>Server %" PRIu32 " of ",
                  head, source->server, source->server);
    put_text(text, source->cluster);
    (void)fputs("</h1>\n", text);
    put_cells(text, titles, 1u << 1);
    for (uint32_t i = 0; i < source->shards; i++)
        put_shard(text, source->first_shard + i, &shard[i]);
    (void)fputs("</table></div>\n<p>Numbers are since each shard began to serve. Staleness is the mean "
                "number of pushes "
                "applied between the pull and the push of a worker. A restart after a crash replays the "
                "journal.</p>\n",
                text);
    put_workers(text, source);
    (void)fputs("<p>For programs: <a href=\"/metrics\">/metrics</a>, <a href=\"/healthz\">/healthz</a>, "
                "<a href=\"/readyz\">/readyz</a></p>\n</body></html>\n",
                text);
    dp_document_end(&answer, text);
    free(shard);
    return answer;
}
