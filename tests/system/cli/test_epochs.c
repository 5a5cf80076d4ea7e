/* Goal    each epoch of a run has one line, as it ends, with the figures of the report; a long table is cut at the end.
 * Method  reports written as worker 0 writes them, a new file each, and looked at. */
#include "tests/lib/test.h"

#include "deploy/run/epochs.h"
#include "deploy/run/outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char place[] = "/tmp/dp_epochs_XXXXXX";
static char report[sizeof place + 8];

static int make_place(void **state)
{
    assert_non_null(mkdtemp(place));
    (void)snprintf(report, sizeof report, "%s/r", place);
    return 0;
}

static int remove_place(void **state)
{
    (void)unlink(report);
    return rmdir(place);
}

/* So many epochs, with an AUC from the third on where told so; the loss is least in epoch `best`. */
static void write_report(unsigned epochs, bool auc, unsigned best)
{
    char draft[sizeof report + 4];
    (void)snprintf(draft, sizeof draft, "%s.d", report);
    FILE *file = fopen(draft, "we");
    assert_non_null(file);
    fprintf(file, "{\"workers\": [{}], \"staleness\": {\"mean\": 0.5, \"max\": 1}, \"epochs\": [");
    for (unsigned e = 1; e <= epochs; e++)
        fprintf(file,
                "%s{\"epoch\": %u, \"train_loss\": 0.5, \"seconds\": 1.5, \"examples_per_s\": 12345.6, "
                "\"test\": {\"loss\": %s%s}}",
                e > 1 ? ", " : "", e, e == best ? "0.125" : "0.25", auc && e > 2 ? ", \"auc\": 0.75" : "");
    fprintf(file, "]}\n");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(draft, report), 0);
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

static void each_epoch_has_one_line(void **state)
{
    char *text = NULL, *shown = NULL;
    size_t size = 0, shown_size = 0;
    FILE *file = open_memstream(&text, &size), *terminal = open_memstream(&shown, &shown_size);
    struct dp_cli_line line = {.file = terminal, .moving = true, .width = 80};
    struct dp_epochs epochs;
    write_report(7, false, 1); /* an earlier training's */
    dp_epochs_init(&epochs, report, false, file);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(size, 0);
    write_report(0, true, 1);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(size, 0);
    dp_cli_line_show(&line, "abc", 1);
    write_report(1, true, 1);
    dp_epochs_look(&epochs, &line);
    assert_string_equal(text, "epoch  train loss   test loss     seconds  examples/s\n"
                              "    1     0.50000     0.12500        1.50      12,346\n");
    dp_epochs_look(&epochs, &line);
    write_report(2, true, 1);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(count(text, "\n"), 3);
    assert_non_null(strstr(text, "\n    2 "));
    write_report(4, true, 1); /* two at once, and a figure that there was not */
    dp_epochs_look(&epochs, &line);
    assert_non_null(
        strstr(text, "\nepoch  train loss   test loss         AUC     seconds  examples/s\n    3 "));
    assert_int_equal(count(text, "\n"), 6);
    dp_epochs_init(&epochs, report, true, file); /* gone on with: those were shown */
    write_report(5, true, 1);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(count(text, "\n"), 8);
    (void)unlink(report);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(fclose(terminal), 0);
    assert_string_equal(shown, "\rabc\033[K\r\033[K"); /* it gave way */
    assert_int_equal(fclose(file), 0);
    free(shown);
    free(text);
}

/* Planted: fields of 12 without a space between them. */
static void columns_never_touch(void **state)
{
    static const char epoch[] = "{\"epoch\": 1, \"train_loss\": -99999.123456, \"seconds\": 123456.5, "
                                "\"examples_per_s\": 12345678901.0, "
                                "\"validation\": {\"loss\": 2.5e30, \"rmse\": 99999.123456, \"all_items\": "
                                "{\"recall@1000\": 0.5, \"ndcg@1000\": 0.25}}}";
    static const char *const words[] = {
        "epoch",   "train loss",   "v. loss", "v. RMSE",         "v. recall@1000", "v. ndcg@1000",
        "seconds", "examples/s\n", "1",       "-99999.12",       "2.5e+30",        "99999.12",
        "0.5000",  "0.2500",       "123456",  "12,345,678,901\n"};
    char *text = NULL, *at;
    size_t size = 0;
    struct dp_epoch_table table = {.file = open_memstream(&text, &size)};
    json_t *root = json_loads(epoch, 0, NULL);
    assert_non_null(root);
    dp_epoch_table_add(&table, root);
    assert_int_equal(fclose(table.file), 0);
    at = text;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *before = at;
        at += strspn(at, " ");
        if ((at == before && i > 0 && at[-1] != '\n') || strncmp(at, words[i], strlen(words[i])) != 0)
            fail_msg("no '%s' in: %s", words[i], text);
        at += strlen(words[i]);
    }
    json_decref(root);
    free(text);
}

/* Planted: digits by each value alone. */
static void a_column_has_one_format(void **state)
{
    static const double rmse[] = {140120.5, 4101.234567, 400.5, 0.25, 1e12};
    static const char *const shown[] = {" 140120.5\n", " 4101.2\n", " 400.5\n", " 0.25000\n", " 1e+12\n"};
    char *text = NULL, *at;
    size_t size = 0;
    struct dp_epoch_table table = {.file = open_memstream(&text, &size)};
    for (size_t i = 0; i < sizeof rmse / sizeof rmse[0]; i++) {
        json_t *epoch = json_pack("{s:i, s:{s:f}}", "epoch", (int)i + 1, "test", "rmse", rmse[i]);
        dp_epoch_table_add(&table, epoch);
        json_decref(epoch);
    }
    assert_int_equal(fclose(table.file), 0);
    at = text;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (!(at = strstr(at, shown[i])))
            fail_msg("no '%s' in: %s", shown[i], text);
    free(text);
}

/* A report of what was lost, of 4 epochs, behind a restore into the third. */
static void a_checkpoints_epochs_are_not_shown_again(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct dp_cli_line line = {0};
    struct dp_epochs epochs;
    write_report(4, true, 1);
    dp_epochs_init(&epochs, report, true, file);
    dp_epochs_restored(&epochs, 2);
    write_report(2, true, 1);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(size, 0);
    write_report(4, true, 1);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(count(text, "\n    3 "), 1);
    assert_int_equal(count(text, "\n    4 "), 1);
    assert_int_equal(count(text, "\n"), 3);
    assert_int_equal(fclose(file), 0);
    free(text);
    (void)unlink(report);
}

/* What a report says of the data, and notes of it, is shown as soon as it says so, once; what a finished one
 * notes is the summary's. */
static void notes_are_shown_once(void **state)
{
    static const char *const reports[] = {
        "{\"finished\": false, \"epochs\": [], \"understood\": [\"numbers: a\", \"label: y\"], \"advice\": "
        "[\"a typo?\"]}",
        "{\"finished\": false, \"epochs\": [{\"epoch\": 1}], \"advice\": [\"a typo?\"]}",
        "{\"finished\": true, \"epochs\": [{\"epoch\": 1}], \"advice\": [\"a typo?\", \"more\"]}"};
    char *shown = NULL;
    size_t size = 0;
    FILE *terminal = open_memstream(&shown, &size), *table = fopen("/dev/null", "we");
    struct dp_cli_line line = {.file = terminal};
    struct dp_epochs epochs;
    dp_epochs_init(&epochs, report, false, table);
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        FILE *file = fopen(report, "we");
        assert_non_null(file);
        assert_true(fputs(reports[i], file) >= 0);
        assert_int_equal(fclose(file), 0);
        dp_epochs_look(&epochs, &line);
        assert_int_equal(fflush(terminal), 0);
        assert_string_equal(shown, "numbers: a\nlabel: y\ndownpour: a typo?\n");
    }
    (void)unlink(report);
    assert_int_equal(fclose(terminal), 0);
    assert_int_equal(fclose(table), 0);
    free(shown);
    /* Of a training that is over before the first look, there is only the last report. */
    static const char over[] = "{\"finished\": true, \"understood\": [\"label: y\"], \"advice\": [\"more\"]}";
    terminal = open_memstream(&shown, &size);
    line.file = terminal;
    table = fopen("/dev/null", "we");
    dp_epochs_init(&epochs, report, false, table);
    FILE *file = fopen(report, "we");
    assert_true(file && fputs(over, file) >= 0 && fclose(file) == 0);
    dp_epochs_look(&epochs, &line);
    assert_int_equal(fclose(terminal), 0);
    assert_string_equal(shown, "label: y\n");
    assert_int_equal(fclose(table), 0);
    (void)unlink(report);
    free(shown);
}

/* Of recommenders: the highest K, whatever it is. */
static void items_ranked_among_all_have_their_columns(void **state)
{
    char *text = NULL;
    size_t size = 0;
    struct dp_epoch_table table = {.file = open_memstream(&text, &size)};
    json_t *epoch = json_loads("{\"epoch\": 1, \"test\": {\"all_items\": {\"items\": 7, \"recall@5\": 0.25, "
                               "\"recall@100\": 0.5, \"ndcg@20\": 0.125}}}",
                               0, NULL);
    dp_epoch_table_add(&table, epoch);
    json_decref(epoch);
    assert_int_equal(fclose(table.file), 0);
    assert_string_equal(text, "epoch  recall@100     ndcg@20\n    1      0.5000      0.1250\n");
    free(text);
}

static char *outcome(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(dp_outcome_print(report, file, NULL), DP_OK);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Planted: a table of its own. */
static void the_summary_has_no_second_table(void **state)
{
    write_report(300, true, 1);
    char *text = outcome();
    assert_null(strstr(text, "epoch"));
    assert_non_null(strstr(text, "Staleness: 0.50 pushes between a pull and its push"));
    assert_null(strstr(text, "Clock gap"));
    assert_true(!strstr(text, "Changed") && !strstr(text, "Rate:"));
    free(text);
}

/* Of `has` epochs where `wants` were asked for, on a terminal; the loss is least in epoch `best`. */
static char *terminal(unsigned wants, unsigned has, unsigned best, bool *cut)
{
    char *text = NULL, draft[sizeof report + 4];
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct dp_cli_line line = {0};
    struct dp_epochs epochs;
    (void)unlink(report);
    (void)snprintf(draft, sizeof draft, "%s.d", report);
    dp_epochs_init(&epochs, report, false, file);
    assert_int_equal(epochs.lines_max, 0); /* no terminal */
    epochs.lines_max = 20;
    for (unsigned n = 1; n <= has; n++) {
        write_report(n, false, best);
        json_t *root = json_load_file(report, 0, NULL);
        assert_int_equal(json_object_set_new(root, "settings", json_pack("{s:i}", "epochs", (int)wants)), 0);
        assert_int_equal(json_dump_file(root, draft, 0), 0);
        assert_int_equal(rename(draft, report), 0);
        json_decref(root);
        dp_epochs_look(&epochs, &line);
    }
    *cut = dp_epochs_end(&epochs);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* The first, the last, the best and some between, once each, and how many there are. */
static void a_terminal_is_not_filled(void **state)
{
    static const struct {
        unsigned wants, has, best, lines;
    } cases[] = {{20, 20, 7, 20},     {60, 60, 2, 20}, {60, 60, 1, 19}, {60, 60, 60, 19},
                 {300, 300, 101, 20}, {60, 15, 9, 7},  {60, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool cut;
        char line[32], *text = terminal(cases[i].wants, cases[i].has, cases[i].best, &cut);
        if (count(text, "    0.50000") != cases[i].lines)
            print_message("%u of %u, best %u:\n%s", cases[i].has, cases[i].wants, cases[i].best, text);
        assert_int_equal(count(text, "    0.50000"), cases[i].lines);
        assert_true(cut == (cases[i].lines < cases[i].has));
        (void)snprintf(line, sizeof line, "\n%5u ", cases[i].has);
        assert_int_equal(count(text, line), 1);
        (void)snprintf(line, sizeof line, "\n%5u ", cases[i].best);
        assert_int_equal(count(text, line), 1);
        assert_int_equal(count(text, " epochs; all are in "), cut);
        (void)snprintf(line, sizeof line, "\n(%u of %u epochs", cases[i].lines, cases[i].has);
        assert_int_equal(count(text, line), cut);
        free(text);
    }
}

static void changed_rows_and_divided_rates_are_told(void **state)
{
    FILE *file = fopen(report, "we");
    assert_non_null(file);
    fprintf(file, "{\"staleness\": {\"changed\": 0.0625, \"rate_divided_by\": 1.75}, \"epochs\": []}\n");
    assert_int_equal(fclose(file), 0);
    char *text = outcome();
    assert_non_null(strstr(text, "Changed:   6.2% of the rows of a push had been changed since its pull\n"
                                 "Rate:      divided by 1.75 for staleness, on average\n"));
    free(text);
    (void)unlink(report);
}

static void workers_that_wait_are_told_what_it_cost(void **state)
{
    FILE *file = fopen(report, "we");
    assert_non_null(file);
    fprintf(file, "{\"workers\": [{\"seconds\": 3}, {\"seconds\": 5}], \"spent_s\": {\"waiting_rule\": 2}, "
                  "\"staleness\": {\"clock_gap\": {\"mean\": 0.25, \"max\": 3}}, \"epochs\": []}\n");
    assert_int_equal(fclose(file), 0);
    char *text = outcome();
    assert_non_null(
        strstr(text, "Clock gap: 0.25 steps ahead of the slowest worker, on average; 3 at most; 25% of the "
                     "workers' time went into waiting for others\n"));
    assert_null(strstr(text, "Dropped"));
    free(text);
    (void)unlink(report);
}

static void what_backups_dropped_is_told(void **state)
{
    FILE *file = fopen(report, "we");
    assert_non_null(file);
    fprintf(file, "{\"workers\": [{\"seconds\": 3, \"pushes\": 7, \"examples\": 70}, {\"pushes\": 3, "
                  "\"examples\": 30}], "
                  "\"dropped\": {\"pushes\": 2, \"partly\": 1, \"examples\": 25, \"not_computed\": 10}, "
                  "\"epochs\": []}\n");
    assert_int_equal(fclose(file), 0);
    char *text = outcome();
    assert_non_null(strstr(text,
                           "Dropped:   2 of 10 pushes; 15.0% of the examples came too late for their step, "
                           "and 10.0% were not computed; 1 more pushes were used in part\n"));
    free(text);
    (void)unlink(report);
}

/* Planted: the rate of the first note; the mean since the begin. */
static void the_time_left_is_not_guessed(void **state)
{
    struct dp_cli_pace pace = {0};
    assert_true(dp_cli_pace_left(&pace, 0, 10000, 1000) == 0);
    assert_true(dp_cli_pace_left(&pace, 1, 10000, 60000) == 0); /* it begins here */
    assert_true(dp_cli_pace_left(&pace, 2, 10000, 60500) == 0);
    assert_true(dp_cli_pace_left(&pace, 400, 10000, 64000) == 0);
    double left = dp_cli_pace_left(&pace, 501, 10000, 65000);
    assert_true(left > 90 && left < 100); /* 100 examples a second */
    /* Ten times as fast from then on: soon it says so. */
    for (uint64_t s = 1; s <= 8; s++)
        left = dp_cli_pace_left(&pace, 501 + 1000 * s, 10000, 65000 + 1000 * s);
    assert_true(left > 1 && left < 2.5);
    assert_true(dp_cli_pace_left(&pace, 10000, 10000, 75000) == 0);
    /* A worker that comes back counts anew. */
    assert_true(dp_cli_pace_left(&pace, 300, 10000, 76000) == 0);
    assert_true(dp_cli_pace_left(&pace, 300, 10000, 90000) == 0); /* and stands still */
    left = dp_cli_pace_left(&pace, 1300, 10000, 91000);
    assert_true(left > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_never_touch),
                                       cmocka_unit_test(a_column_has_one_format),
                                       cmocka_unit_test(each_epoch_has_one_line),
                                       cmocka_unit_test(a_checkpoints_epochs_are_not_shown_again),
                                       cmocka_unit_test(notes_are_shown_once),
                                       cmocka_unit_test(items_ranked_among_all_have_their_columns),
                                       cmocka_unit_test(the_summary_has_no_second_table),
                                       cmocka_unit_test(a_terminal_is_not_filled),
                                       cmocka_unit_test(changed_rows_and_divided_rates_are_told),
                                       cmocka_unit_test(workers_that_wait_are_told_what_it_cost),
                                       cmocka_unit_test(what_backups_dropped_is_told),
                                       cmocka_unit_test(the_time_left_is_not_guessed)};
    return cmocka_run_group_tests_name("epochs", tests, make_place, remove_place);
}
