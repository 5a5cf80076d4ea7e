#include "server/metrics/worker_series.h"

#include "common/base/json.h"
#include "server/metrics/series.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Numbers of a note. A note without one has no such series. */
static const struct number {
    const char *key, *name, *type, *help;
} numbers[] = {
    {"epoch", "downpour_worker_epoch", "gauge", "epoch of the run that it trains, from 1"},
    {"epochs", "downpour_worker_epochs", "gauge", "epochs of the run"},
    {"step", "downpour_worker_step", "gauge", "steps that its process has pushed in this run"},
    {"examples", "downpour_worker_examples_total", "counter", "examples that it has trained in this run"},
    {"examples_total", "downpour_worker_examples_planned", "gauge", "examples that it trains in this run"},
    {"dropped", "downpour_worker_examples_dropped_total", "counter",
     "examples that came too late for their step (sync:B)"},
    {"examples_per_s", "downpour_worker_examples_per_second", "gauge",
     "examples a second since its last note but one"},
    {"loss", "downpour_worker_loss", "gauge", "mean loss over the epoch so far"},
    {"staleness_mean", "downpour_worker_staleness_mean", "gauge",
     "mean of the pushes applied between its pulls and pushes"},
};

struct worker_label {
    char run[12], worker[12];
    struct dp_label label[5];
};

static void init_label(struct worker_label *l, const struct dp_exporter_note *note)
{
    (void)snprintf(l->run, sizeof l->run, "%" PRIu32, note->run);
    (void)snprintf(l->worker, sizeof l->worker, "%" PRIu32, note->worker);
    memset(l->label, 0, sizeof l->label);
    l->label[0] = (struct dp_label){"run", l->run};
    l->label[1] = (struct dp_label){"worker", l->worker};
}

static void put_numbers(FILE *to, const struct dp_exporter_notes *notes, const struct number *number)
{
    dp_series_family(to, number->name, number->type, number->help);
    for (uint32_t i = 0; i < notes->count; i++) {
        struct worker_label l;
        double value = dp_json_get_real(notes->note[i].root, number->key);
        init_label(&l, &notes->note[i]);
        if (isfinite(value))
            dp_series_real(to, number->name, "", l.label, value);
    }
}

static void put_states(FILE *to, const struct dp_exporter_notes *notes)
{
    static const char state[] = "downpour_worker_state", silent[] = "downpour_worker_silent_seconds",
                      diverged[] = "downpour_worker_diverged";
    struct worker_label l;
    dp_series_family(to, state, "gauge", "1, with the state as a label");
    for (uint32_t i = 0; i < notes->count; i++) {
        init_label(&l, &notes->note[i]);
        l.label[2] = (struct dp_label){"state", dp_exporter_note_state(&notes->note[i])};
        dp_series_u64(to, state, "", l.label, 1);
    }
    dp_series_family(to, silent, "gauge", "time since its last note, by the first server's clock");
    for (uint32_t i = 0; i < notes->count; i++) {
        init_label(&l, &notes->note[i]);
        dp_series_real(to, silent, "", l.label, notes->note[i].age_s);
    }
    dp_series_family(to, diverged, "gauge", "1: its training diverged, and it has ended");
    for (uint32_t i = 0; i < notes->count; i++) {
        init_label(&l, &notes->note[i]);
        dp_series_u64(to, diverged, "", l.label, dp_json_get_u64(notes->note[i].root, "diverged") > 0);
    }
}

static void put_phases(FILE *to, const struct dp_exporter_notes *notes)
{
    static const char name[] = "downpour_worker_phase_seconds_total";
    dp_series_family(to, name, "counter",
                     "time of its steps by what it did; those of the host add up to all of it");
    for (uint32_t i = 0; i < notes->count; i++) {
        struct worker_label l;
        const char *phase;
        char word[DP_SERIES_WORD];
        json_t *seconds, *spent = json_object_get(notes->note[i].root, "spent_s");
        uint32_t left = 16;
        init_label(&l, &notes->note[i]);
        json_object_foreach(spent, phase, seconds)
        {
            if (strcmp(dp_series_word(phase, word), phase) != 0 || !json_is_number(seconds) || left-- == 0)
                continue;
            l.label[2] = (struct dp_label){"phase", word};
            dp_series_real(to, name, "", l.label, json_number_value(seconds));
        }
    }
}

/* Whom or what it has waited for, 2 s and longer. */
static void put_waits(FILE *to, const struct dp_exporter_notes *notes)
{
    static const char name[] = "downpour_worker_waiting";
    dp_series_family(to, name, "gauge",
                     "1, while it waits for 2 s and longer: why, and for which worker (for)");
    for (uint32_t i = 0; i < notes->count; i++) {
        struct worker_label l;
        char awaited[24] = "", word[DP_SERIES_WORD];
        const char *reason = json_string_value(json_object_get(notes->note[i].root, "awaited_reason"));
        double worker = dp_json_get_real(notes->note[i].root, "awaited_worker");
        if (!*dp_series_word(reason, word))
            continue;
        if (isfinite(worker) && worker >= 0 && worker < 1e9)
            (void)snprintf(awaited, sizeof awaited, "%.0f", worker);
        init_label(&l, &notes->note[i]);
        l.label[2] = (struct dp_label){"reason", word};
        l.label[3] = (struct dp_label){"for", awaited};
        dp_series_u64(to, name, "", l.label, 1);
    }
}

void dp_exporter_workers(FILE *to, const struct dp_exporter_notes *notes)
{
    if (notes->count == 0)
        return;
    put_states(to, notes);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_numbers(to, notes, &numbers[i]);
    put_phases(to, notes);
    put_waits(to, notes);
}
