#include "deploy/cli/progress.h"

#include "common/base/deadline.h"
#include "common/base/json.h"
#include "common/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PLAIN_MS       5000u
#define FIRST_MS       1000u /* to the second line: the first one says only that it begins */
#define NOTES_MS       1000u
#define STILL_MS       10000u
#define STILL_AGAIN_MS 30000u
#define STEADY_MS      5000u /* of progress, before somebody can say when it ends */

/* As the report has it: over the examples of one epoch, whichever worker had them. */
static void add_loss(struct dp_cli_progress *progress, uint32_t epoch, double loss, uint64_t examples)
{
    if (progress->loss_examples > 0 && epoch > progress->loss_epoch)
        return;
    if (epoch < progress->loss_epoch || progress->loss_examples == 0) {
        progress->loss_epoch = epoch;
        progress->loss_sum = 0;
        progress->loss_examples = 0;
    }
    progress->loss_sum += loss * (double)examples;
    progress->loss_examples += examples;
}

void dp_cli_progress_add(struct dp_cli_progress *progress, const void *json, size_t size)
{
    json_t *root = json_loadb(json, size, 0, NULL);
    const char *state = json_string_value(json_object_get(root, "state"));
    uint64_t before = dp_json_get_u64(root, "first_epoch"), epoch = before + dp_json_get_u64(root, "epoch"),
             epochs = before + dp_json_get_u64(root, "epochs"), examples = dp_json_get_u64(root, "examples"),
             diverged = dp_json_get_u64(root, "diverged");
    const json_t *loss = json_object_get(root, "loss"), *rate = json_object_get(root, "examples_per_s");
    if (!state || epoch > UINT32_MAX || epochs > UINT32_MAX)
        goto done;
    bool is_done = strcmp(state, "done") == 0;
    if (!is_done && (progress->workers == progress->done || epoch < progress->epoch))
        progress->epoch = (uint32_t)epoch;
    if (is_done && progress->workers == progress->done)
        progress->epoch = (uint32_t)epoch;
    progress->epochs = (uint32_t)epochs;
    progress->workers++;
    progress->done += is_done;
    progress->waiting += strcmp(state, "waiting") == 0;
    progress->evaluating += strcmp(state, "evaluating") == 0;
    progress->reading += strcmp(state, "reading") == 0;
    if (diverged > 0 && diverged <= epochs - before &&
        (!progress->diverged || before + diverged < progress->diverged))
        progress->diverged = (uint32_t)(before + diverged);
    progress->examples += examples;
    progress->total += dp_json_get_u64(root, "examples_total");
    if (json_is_number(rate) && strcmp(state, "training") == 0)
        progress->rate += json_number_value(rate);
    if (json_is_number(loss))
        add_loss(progress, (uint32_t)epoch, json_number_value(loss), dp_json_get_u64(root, "loss_examples"));
    const char *awaited = json_string_value(json_object_get(root, "awaited"));
    if (awaited && !progress->awaited[0])
        (void)snprintf(progress->awaited, sizeof progress->awaited, "%.255s", awaited);
done:
    json_decref(root);
}

const char *dp_cli_number(double value, char *out, size_t size)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%.0f", value);
    size_t to = 0;
    for (int i = 0; i < n && i < (int)sizeof digits - 1 && to + 2 < size; i++) {
        out[to++] = digits[i];
        if (digits[i] != '-' && (n - 1 - i) % 3 == 0 && i + 1 < n)
            out[to++] = ',';
    }
    out[to] = '\0';
    return out;
}

int dp_cli_digits(double value, int most)
{
    for (double v = fabs(value); v >= 100 && most > 0; v /= 10)
        most--;
    return most;
}

double dp_cli_pace_left(struct dp_cli_pace *pace, uint64_t examples, uint64_t total, uint64_t now_ms)
{
    bool begins = pace->since_ms == 0 || examples < pace->since; /* a worker that comes back counts anew */
    if (begins && examples > 0)
        *pace = (struct dp_cli_pace){now_ms, examples, now_ms, examples};
    if (pace->since_ms == 0 || examples >= total)
        return 0;
    if (now_ms - pace->middle_ms >= STEADY_MS &&
        now_ms - pace->middle_ms >= pace->middle_ms - pace->since_ms) {
        pace->since_ms = pace->middle_ms;
        pace->since = pace->middle;
        pace->middle_ms = now_ms;
        pace->middle = examples;
    }
    uint64_t ms = now_ms - pace->since_ms, done = examples - pace->since;
    return ms < STEADY_MS || done == 0 ? 0 : (double)(total - examples) / (double)done * (double)ms / 1000;
}

static void time_left(const struct dp_cli_progress *p, char *out, size_t size)
{
    out[0] = '\0';
    if (!(p->left_s > 0) || p->left_s > 1e9)
        return;
    unsigned long s = (unsigned long)ceil(p->left_s);
    if (s >= 3600)
        (void)snprintf(out, size, "  %lu:%02lu:%02lu left", s / 3600, s / 60 % 60, s % 60);
    else
        (void)snprintf(out, size, "  %lu:%02lu left", s / 60, s % 60);
}

void dp_cli_progress_text(const struct dp_cli_progress *p, char *out, size_t size)
{
    char number[32], left[32], loss[32] = "", speed[64] = "";
    if (p->workers == 0 || p->reading == p->workers) {
        (void)snprintf(out, size, p->workers ? "reading the data" : "starting the workers");
        return;
    }
    double share = p->total ? 100.0 * (double)p->examples / (double)p->total : 0;
    if (p->loss_examples > 0 && p->loss_epoch == p->epoch)
        (void)snprintf(loss, sizeof loss, "  loss %.5g", p->loss_sum / (double)p->loss_examples);
    if (p->rate > 0 && p->rate < 1e15)
        (void)snprintf(speed, sizeof speed, "  %s examples/s", dp_cli_number(p->rate, number, sizeof number));
    time_left(p, left, sizeof left);
    bool evaluating = p->evaluating > 0 && p->evaluating + p->waiting + p->done == p->workers;
    (void)snprintf(out, size, "epoch %" PRIu32 "/%" PRIu32 "  %3.0f%%%s%s%s%s", p->epoch, p->epochs,
                   share > 100 ? 100 : floor(share), loss, speed, left, evaluating ? "  evaluating" : "");
}

void dp_cli_line_init(struct dp_cli_line *line, FILE *file)
{
    struct winsize window;
    *line = (struct dp_cli_line){.file = file, .width = 80};
    line->moving = isatty(fileno(file)) == 1;
    if (line->moving && ioctl(fileno(file), TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        line->width = window.ws_col;
}

void dp_cli_line_show(struct dp_cli_line *line, const char *text, uint64_t now_ms)
{
    bool same = strcmp(text, line->last) == 0;
    if (!line->file || line->quiet)
        return;
    if (line->moving) {
        if (same && line->open)
            return;
        /* Cut to the terminal's width, as a wrapped line cannot be gone back over; then the old one's rest
         * erased. */
        fprintf(line->file, "\r%.*s\033[K", (int)(line->width > 1 ? line->width - 1 : 1), text);
        line->open = true;
    } else {
        if (same || now_ms < line->next_ms)
            return;
        fprintf(line->file, "%s\n", text);
        line->next_ms = now_ms + (line->shown++ ? PLAIN_MS : FIRST_MS);
    }
    fflush(line->file);
    (void)snprintf(line->last, sizeof line->last, "%s", text);
}

void dp_cli_line_clear(struct dp_cli_line *line)
{
    if (line->file && line->open) {
        fputs("\r\033[K", line->file);
        fflush(line->file);
    }
    line->open = false;
}

void dp_cli_line_end(struct dp_cli_line *line)
{
    if (line->open) {
        fputc('\n', line->file);
        fflush(line->file);
    }
    line->open = false;
}

const char *dp_cli_still(struct dp_cli_still *still, const struct dp_cli_progress *seen, uint64_t now_ms)
{
    bool moves = seen && (seen->examples != still->examples || seen->done != still->done ||
                          seen->evaluating != still->evaluating);
    if (moves || still->since_ms == 0)
        *still = (struct dp_cli_still){.since_ms = now_ms, .told_ms = now_ms};
    if (seen) {
        still->examples = seen->examples;
        still->done = seen->done;
        still->evaluating = seen->evaluating;
    }
    if (now_ms - still->told_ms < (still->told ? STILL_AGAIN_MS : STILL_MS) || (seen && !seen->awaited[0]))
        return NULL;
    still->told_ms = now_ms;
    still->told = true;
    (void)snprintf(still->text, sizeof still->text, "nothing has moved for %" PRIu64 " s: %s",
                   (now_ms - still->since_ms) / 1000,
                   seen ? seen->awaited : "the first server, to which workers report, does not answer");
    dp_text_clean(still->text); /* a note is anybody's text */
    return still->text;
}

/* A line of its own, between those that show the progress. */
static void say(struct dp_cli_line *line, const char *text)
{
    if (!line->file)
        return;
    dp_cli_line_end(line);
    fprintf(line->file, "downpour: %s\n", text);
    fflush(line->file);
}

static void visit(void *context, const char *name, const void *bytes, size_t size)
{
    (void)name;
    dp_cli_progress_add(context, bytes, size);
}

struct dp_cli_progress dp_cli_progress_watch(struct dp_client *client, uint32_t run, struct dp_cli_line *line)
{
    struct dp_cli_progress progress = {0};
    char prefix[64], text[160];
    (void)snprintf(prefix, sizeof prefix, "run/%" PRIu32 "/progress/", run);
    bool heard = dp_client_notes(client, prefix, visit, &progress, NOTES_MS, NULL) == DP_OK;
    uint64_t now_ms = dp_now_ms();
    const char *still = dp_cli_still(&line->still, heard ? &progress : NULL, now_ms);
    if (still)
        say(line, still);
    if (!heard)
        return (struct dp_cli_progress){0};
    progress.left_s = dp_cli_pace_left(&line->pace, progress.examples, progress.total, now_ms);
    dp_cli_progress_text(&progress, text, sizeof text);
    dp_cli_line_show(line, text, now_ms);
    return progress;
}
