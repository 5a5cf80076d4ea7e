/* The command's parts: flags, the progress line, ports, and the directory of a run. */
#include "tests/lib/test.h"

#include "deploy/cli/options.h"
#include "deploy/cli/progress.h"
#include "deploy/run/folder.h"
#include "deploy/run/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct dp_option options[] = {
    DP_OPTION_HEADING("Some"),
    {"--epochs", "N", "training.epochs", "passes"},
    {"--optimizer", "NAME", "training.optimizer.kind", "kind"},
    {"--optimizer l1", "X", "training.optimizer.l1", "first line\nsecond"},
    {"--optimizer l2", "X", "training.optimizer.l2", "of weights"},
    {"--no-overlap", NULL, "training.overlap=false", "a switch"},
    {"--dir", "DIR", NULL, "a directory"},
    DP_OPTION_RARE("Rare"),
    {"--train", "FILE", NULL, "a file"},
    {"--train labels", "FILE", NULL, "another"},
    {"--inject", "KEY=VALUE,...", NULL, "delays"},
    {"--inject pace", "TIME", NULL, "of all"},
    {"--inject straggler", "W:TIME", NULL, "of some"},
    {"--a-name-that-has-no-room", "X", NULL,
     "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"},
};
#define OPTIONS (sizeof options / sizeof options[0])
static const struct dp_option_alias aliases[] = {{"--num-epochs", "--epochs"},
                                                 {"--passes", "--epochs"},
                                                 {"--l1", "--optimizer l1"},
                                                 {"--pace", "--inject pace"},
                                                 {NULL, NULL}};
static const struct dp_command command = {.name = "run",
                                          .summary = "summary",
                                          .usage = "usage",
                                          .options = options,
                                          .count = OPTIONS,
                                          .aliases = aliases};

static enum dp_status parse(char *const *argv, const char **values, bool *help, struct dp_error *err)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    return dp_options_parse(&command, argc, argv, values, help, err);
}

static void flags_come_in_both_forms_and_any_order(void **state)
{
    const char *values[OPTIONS];
    struct dp_error err = {0};
    struct dp_cluster cluster;
    bool help;
    /* A suboption before the optimizer that it belongs to, as a word of its own, too. */
    char *argv[] = {"--optimizer=l1=0.5", "--optimizer l2", "2",     "--optimizer", "ftrl",
                    "--no-overlap",       "--epochs=7",     "--dir", "-x",          NULL};
    assert_int_equal(parse(argv, values, &help, &err), DP_OK);
    assert_false(help);
    dp_cluster_defaults(&cluster);
    assert_int_equal(dp_options_apply(&command, values, &cluster, &err), DP_OK);
    assert_true(cluster.training.epochs == 7 && !cluster.training.overlap);
    assert_true(cluster.training.optimizer.kind == DP_OPT_FTRL && cluster.training.optimizer.l1 == 0.5f);
    assert_true(cluster.training.optimizer.l2 == 2.0f);
    assert_string_equal(dp_options_value(&command, values, "--dir"), "-x");
    char *none[] = {NULL};
    assert_int_equal(parse(none, values, &help, &err), DP_OK);
    assert_null(dp_options_value(&command, values, "--dir"));
    char *helped[] = {"--nonsense", "--help", NULL};
    assert_int_equal(parse(helped, values, &help, &err), DP_OK);
    assert_true(help);
}

/* A suboption begins with a known KEY=; all else is a value, with its commas and colons. */
static void suboptions_are_taken_off_a_value(void **state)
{
    static const struct {
        char *argv[5];
        const char *name, *value;
    } good[] = {
        {{"--optimizer", "ftrl:l1=3,l2=4"}, "--optimizer", "ftrl"},
        {{"--optimizer", "ftrl:l1=3,l2=4"}, "--optimizer l1", "3"},
        {{"--optimizer", "ftrl,l1=3,l2=4"}, "--optimizer l2", "4"},
        {{"--optimizer", "l2=4", "--optimizer", "ftrl"}, "--optimizer l2", "4"},
        {{"--optimizer", "l2=4"}, "--optimizer", NULL},
        {{"--passes=9"}, "--epochs", "9"},
        {{"--num-epochs", "9"}, "--epochs", "9"},
        {{"--inject", "pace=20ms,straggler=3:10x,1:5ms"}, "--inject straggler", "3:10x,1:5ms"},
        {{"--inject=straggler=3:10x,1:5ms,pace=20ms"}, "--inject pace", "20ms"},
        {{"--train", "a=b,c=d:e,labels=f=g"}, "--train", "a=b,c=d:e"},
        {{"--train", "a=b,c=d:e,labels=f=g"}, "--train labels", "f=g"},
    };
    const char *values[OPTIONS];
    struct dp_error err = {0};
    bool help;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(parse(good[i].argv, values, &help, &err), DP_OK);
        const char *value = dp_options_value(&command, values, good[i].name);
        if (!value != !good[i].value || (value && strcmp(value, good[i].value) != 0))
            fail_msg("case %zu: %s is '%s'", i, good[i].name, value ? value : "none");
    }
}

static void wrong_flags_are_named_with_the_nearest(void **state)
{
    static const struct {
        char *argv[5];
        const char *text;
    } bad[] = {
        {{"--epoch", "3", NULL}, "'--epoch' (did you mean '--epochs'?)"},
        {{"--quantum", NULL}, "unknown flag '--quantum'; "},
        {{"epochs", NULL}, "unexpected argument 'epochs'"},
        {{"--epochs", NULL}, "'--epochs' needs a value"},
        {{"--epochs", "--dir", "x", NULL}, "'--epochs' needs a value"},
        {{"--epochs=1", "--epochs=2", NULL}, "'--epochs' is given twice"},
        {{"--epochs=1", "--passes=2", NULL}, "'--epochs' ('--passes' is the same) is given twice"},
        {{"--pass", "1", NULL}, "unknown flag '--pass'"},
        {{"--num-epochs --passes", "1", NULL}, "unknown flag"},
        {{"--no-overlap=1", NULL}, "'--no-overlap' takes no value"},
        {{"--optimizer", "ftrl,l3=1"}, "--optimizer has no suboption 'l3'; it has l1=X, l2=X"},
        {{"--optimizer", "l3=1"}, "--optimizer has no suboption 'l3'"},
        {{"--optimizer", "l1=1,l1=2"}, "'--optimizer l1' is given twice"},
        {{"--optimizer", "ftrl", "--optimizer", "adam,l1=2"}, "'--optimizer' is given twice"},
        {{"--inject", "20ms"}, "--inject has no suboption '20ms'; it has pace=TIME, straggler=W:TIME"},
        {{"--inject", "20ms,pace=1ms"}, "--inject has no suboption '20ms'"},
        {{"--l1", "0.5"}, "flag '--l1' is now '--optimizer l1=X' (or '--optimizer NAME,l1=X')"},
        {{"--pace=5ms"}, "flag '--pace' is now '--inject pace=TIME'"},
        {{"--optimizer l3", "1"}, "unknown flag"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *values[OPTIONS];
        struct dp_error err = {0};
        bool help;
        if (parse(bad[i].argv, values, &help, &err) != DP_ARGUMENT || !strstr(err.text, bad[i].text))
            fail_msg("case %zu: '%s'", i, err.text);
    }
}

static char *help_text(bool all)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    dp_options_help(&command, all, file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void help_lists_every_flag(void **state)
{
    char *text = help_text(true);
    for (size_t i = 0; i < OPTIONS; i++)
        assert_non_null(strstr(text, !options[i].name               ? options[i].help
                                     : strchr(options[i].name, ' ') ? strchr(options[i].name, ' ') + 1
                                                                    : options[i].name));
    assert_non_null(
        strstr(text, "\n    l1=X                   first line\n                           second\n"));
    assert_non_null(strstr(text, "  --a-name-that-has-no-room X\n                           one two"));
    assert_non_null(strstr(text, " twelve thirteen\n                           fourteen fifteen\n"));
    free(text);
    text = help_text(false);
    assert_non_null(strstr(text, "--dir DIR"));
    assert_non_null(strstr(text, "--help all"));
    assert_null(strstr(text, "l1"));
    assert_null(strstr(text, "Rare"));
    assert_null(strstr(text, "--train"));
    free(text);
}

static void add(struct dp_cli_progress *p, const char *json)
{
    dp_cli_progress_add(p, json, strlen(json));
}

static void progress_sums_the_workers(void **state)
{
    struct dp_cli_progress p = {0};
    char text[160];
    dp_cli_progress_text(&p, text, sizeof text);
    assert_string_equal(text, "starting the workers");
    add(&p, "{\"state\":\"reading\",\"epoch\":1,\"epochs\":4,\"examples\":0,\"examples_total\":10}");
    dp_cli_progress_text(&p, text, sizeof text);
    assert_string_equal(text, "reading the data");

    memset(&p, 0, sizeof p);
    add(&p, "{\"state\":\"training\",\"epoch\":3,\"epochs\":4,\"examples\":70000,\"examples_total\":100000,"
            "\"loss\":0.5,\"loss_examples\":700,\"examples_per_s\":800.0}");
    add(&p, "{\"state\":\"training\",\"epoch\":2,\"epochs\":4,\"examples\":50000,\"examples_total\":100000,"
            "\"loss\":0.25,\"loss_examples\":300,\"examples_per_s\":700.0}");
    p.left_s = 53.4;
    dp_cli_progress_text(&p, text, sizeof text); /* the loss is of the epoch that is shown */
    assert_string_equal(text, "epoch 2/4   60%  loss 0.25  1,500 examples/s  0:54 left");
    add(&p, "{\"state\":\"waiting\",\"epoch\":2,\"epochs\":4,\"examples\":50000,\"examples_total\":100000,"
            "\"loss\":0.5,\"loss_examples\":700}");
    dp_cli_progress_text(&p, text, sizeof text); /* weighted by examples, as in the report */
    assert_string_equal(text, "epoch 2/4   56%  loss 0.425  1,500 examples/s  0:54 left");
    add(&p, "{\"state\":\"done\",\"epoch\":4,\"epochs\":4,\"examples\":100000,\"examples_total\":100000}");
    assert_int_equal(p.epoch, 2); /* of those still at work */

    memset(&p, 0, sizeof p);
    add(&p, "{\"state\":\"waiting\",\"epoch\":4,\"epochs\":4,\"examples\":9,\"examples_total\":10,\"loss\":"
            "1e-7,\"loss_examples\":9}");
    add(&p, "{\"state\":\"evaluating\",\"epoch\":4,\"epochs\":4,\"examples\":10,\"examples_total\":10}");
    dp_cli_progress_text(&p, text, sizeof text);
    assert_string_equal(text, "epoch 4/4   95%  loss 1e-07  evaluating");
    assert_int_equal(p.diverged, 0);
}

/* Planted: the last one; the epoch of the run; rubbish taken. */
static void progress_has_the_first_epoch_that_diverged(void **state)
{
    struct dp_cli_progress p = {0};
    add(&p, "{\"state\":\"done\",\"first_epoch\":10,\"epoch\":3,\"epochs\":4,\"diverged\":3}");
    add(&p, "{\"state\":\"done\",\"first_epoch\":10,\"epoch\":2,\"epochs\":4,\"diverged\":2}");
    add(&p, "{\"state\":\"done\",\"first_epoch\":10,\"epoch\":4,\"epochs\":4,\"diverged\":4}");
    add(&p, "{\"state\":\"done\",\"first_epoch\":0,\"epoch\":4,\"epochs\":4,\"diverged\":5}");
    assert_int_equal(p.diverged, 12);
}

/* Planted: said while something moves; said once; nothing said when the first server is away. */
static void who_is_waited_for_is_said_when_nothing_moves(void **state)
{
    struct dp_cli_still still = {0};
    struct dp_cli_progress p = {0};
    add(&p, "{\"state\":\"training\",\"epoch\":1,\"epochs\":4,\"examples\":5}");
    assert_null(dp_cli_still(&still, &p, 1000));
    assert_null(dp_cli_still(&still, &p, 12000)); /* long evaluations: nobody waits */
    add(&p, "{\"state\":\"training\",\"epoch\":1,\"epochs\":4,\"examples\":5,\"awaited\":\"step 3 waits for "
            "worker 1\"}");
    assert_null(dp_cli_still(&still, &p, 13000)); /* this is news: 5 examples more */
    assert_null(dp_cli_still(&still, &p, 22900));
    assert_string_equal(dp_cli_still(&still, &p, 23000),
                        "nothing has moved for 10 s: step 3 waits for worker 1");
    assert_null(dp_cli_still(&still, &p, 52000));
    assert_non_null(dp_cli_still(&still, &p, 53000));
    p.examples++;
    assert_null(dp_cli_still(&still, &p, 83000));
    assert_null(dp_cli_still(&still, NULL, 92000));
    assert_string_equal(
        dp_cli_still(&still, NULL, 93000),
        "nothing has moved for 10 s: the first server, to which workers report, does not answer");
}

static void notes_that_make_no_sense_change_nothing(void **state)
{
    static const char *const bad[] = {
        "",        "{", "[]", "7", "\"x\"", "{}", "{\"state\":3}", "{\"state\":\"x\",\"epoch\":99999999999}",
        "\xff\xfe"};
    struct dp_cli_progress p = {0}, none = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        add(&p, bad[i]);
    assert_memory_equal(&p, &none, sizeof p);
    char text[160];
    add(&p, "{\"state\":\"training\",\"epoch\":-1,\"epochs\":-1,\"examples\":-5,\"examples_total\":-5,"
            "\"loss\":1e308,"
            "\"examples_per_s\":1e308}");
    dp_cli_progress_text(&p, text, sizeof text);
}

static void numbers_have_their_thousands_apart(void **state)
{
    static const struct {
        double value;
        const char *text;
    } want[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {81234567, "81,234,567"}, {-1234, "-1,234"}};
    char text[32];
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_string_equal(dp_cli_number(want[i].value, text, sizeof text), want[i].text);
    assert_true(strlen(dp_cli_number(1e300, text, sizeof text)) < sizeof text);
}

static void plain_lines_come_seldom_and_only_when_new(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct dp_cli_line line;
    assert_non_null(file);
    dp_cli_line_init(&line, file);
    assert_false(line.moving);
    dp_cli_line_show(&line, "a", 1000);
    dp_cli_line_show(&line, "b", 1500); /* too early */
    dp_cli_line_show(&line, "c", 2000);
    dp_cli_line_show(&line, "d", 6000); /* too early */
    dp_cli_line_show(&line, "c", 9000); /* the same */
    dp_cli_line_show(&line, "e", 9500);
    dp_cli_line_end(&line);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "a\nc\ne\n");
    free(text);
}

static void moving_line_is_written_over_itself(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct dp_cli_line line = {.file = file, .moving = true, .width = 5};
    dp_cli_line_show(&line, "abcdefgh", 0);
    dp_cli_line_show(&line, "abcdefgh", 1);
    dp_cli_line_show(&line, "x", 2);
    dp_cli_line_end(&line);
    dp_cli_line_end(&line);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "\rabcd\033[K\rx\033[K\n");
    free(text);
}

static void ports_are_apart_and_taken_ones_are_named(void **state)
{
    struct dp_cluster_server servers[2] = {{.shards = 2}, {.shards = 3}};
    struct dp_cluster cluster = {.server_count = 2, .server = servers};
    struct dp_error err = {0};
    assert_int_equal(dp_ports_choose(&cluster, 0, &err), DP_OK);
    uint32_t first = servers[0].port;
    assert_true(first >= 1024 && first < 32768);
    assert_int_equal(servers[1].port, first + 3);
    assert_int_equal(dp_ports_choose(&cluster, first, &err), DP_OK);
    assert_int_equal(servers[0].port, first);
    assert_int_equal(dp_ports_choose(&cluster, 65530, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "65535"));
    if (geteuid() != 0) {
        assert_int_equal(dp_ports_choose(&cluster, 1, &err), DP_IO);
        assert_non_null(strstr(err.text, "port 1 "));
    }
}

static char dir[] = "/tmp/dp_test_cli_XXXXXX";

static void make(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (name[strlen(name) - 1] == '/') {
        assert_int_equal(mkdir(path, 0777), 0);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static bool there(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void folder_is_locked(void **state)
{
    struct dp_folder folder, second;
    struct dp_error err = {0};
    assert_int_equal(dp_folder_open_to_read(dir, &folder, &err), DP_NOT_FOUND);
    assert_int_equal(dp_folder_open(dir, &folder, &err), DP_OK);
    assert_int_equal(dp_folder_open(dir, &second, &err), DP_IN_USE);
    assert_non_null(strstr(err.text, dir));
    assert_false(dp_folder_has_run(&folder));
    dp_folder_close(&folder);
    assert_int_equal(dp_folder_open(dir, &folder, &err), DP_OK);
    dp_folder_close(&folder);
    assert_int_equal(dp_folder_open("/dev/null/x", &folder, &err), DP_IO);
}

static struct dp_folder opened(uint32_t number)
{
    struct dp_folder folder;
    struct dp_error err = {0};
    assert_int_equal(dp_folder_open(dir, &folder, &err), DP_OK);
    assert_int_equal(folder.number, number);
    return folder;
}

/* A run of this number with a store of its own, or that of `was`. */
static struct dp_folder begun(const struct dp_folder *was, bool own, uint32_t number)
{
    struct dp_folder next;
    struct dp_error err = {0};
    char name[64];
    assert_int_equal(dp_folder_next(was, 1, &next, &err), DP_OK);
    assert_int_equal(next.number, number);
    assert_int_equal(dp_folder_make(&next, was, own ? NULL : was, &err), DP_OK);
    (void)snprintf(name, sizeof name, "runs/%u/cluster.conf", number);
    make(name);
    return next;
}

/* Planted: a run that was never accepted keeps its place; accept leaves another run's store, or removes that which a run continues on. */
static void a_new_run_takes_the_place_of_the_current_one(void **state)
{
    struct dp_error err = {0};
    struct dp_folder was = opened(0), next = begun(&was, true, 1), read;
    make("notes.txt");
    assert_int_equal(dp_folder_accept(&next, &err), DP_OK);
    make("store/server-0/");
    dp_folder_close(&was);
    /* One that was not accepted is passed over, and its number is not given again. */
    was = opened(1);
    (void)begun(&was, true, 2);
    dp_folder_close(&was);
    was = opened(1);
    assert_true(there("runs/2"));
    next = begun(&was, false, 3);
    assert_false(there("runs/2"));
    assert_int_equal(dp_folder_open_to_read(dir, &read, &err), DP_IN_USE);
    assert_int_equal(dp_folder_accept(&next, &err), DP_OK);
    assert_true(there("runs/1/store/server-0") && there("store/server-0") && there("runs/3/store/server-0"));
    dp_folder_close(&was);
    was = opened(3);
    next = begun(&was, false, 4);
    assert_int_equal(dp_folder_accept(&next, &err), DP_OK);
    assert_true(there("runs/1/store/server-0") && there("runs/4/store/server-0"));
    dp_folder_close(&was);
    /* One that trained nothing leaves the store that it was to continue on. */
    was = opened(4);
    next = begun(&was, false, 5);
    assert_int_equal(dp_folder_drop(&next, &err), DP_OK);
    assert_true(there("runs/1/store/server-0") && there("runs/5/log") && !there("runs/5/cluster.conf"));
    /* Another store: the others go. */
    next = begun(&was, true, 6);
    assert_true(there("store/server-0"));
    assert_int_equal(dp_folder_accept(&next, &err), DP_OK);
    assert_false(there("runs/1") || there("runs/3") || there("runs/4") || there("runs/5") ||
                 there("store/server-0"));
    assert_true(there("notes.txt") && there("runs/6/store") && there("cluster.conf"));
    dp_folder_close(&was);
}

/* A link that is missing is named, and nothing is removed. */
static void a_directory_without_its_link_is_refused(void **state)
{
    struct dp_error err = {0};
    char path[256];
    struct dp_folder folder = opened(6);
    dp_folder_close(&folder);
    (void)snprintf(path, sizeof path, "%s/current", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(dp_folder_open(dir, &folder, &err), DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "ln -sfn runs/6 current"));
    assert_int_equal(dp_folder_open_to_read(dir, &folder, &err), DP_NOT_FOUND);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(dp_folder_open(dir, &folder, &err), DP_DATA);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("runs/6", path), 0);
    folder = opened(6);
    make("runs/2147483647/");
    assert_int_equal(dp_folder_next(&folder, 1, &folder, &err), DP_FULL);
    dp_folder_close(&folder);
}

static int setup(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    char remove[64];
    (void)snprintf(remove, sizeof remove, "rm -r %s", dir);
    return system(remove);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_come_in_both_forms_and_any_order),
        cmocka_unit_test(suboptions_are_taken_off_a_value),
        cmocka_unit_test(wrong_flags_are_named_with_the_nearest),
        cmocka_unit_test(help_lists_every_flag),
        cmocka_unit_test(progress_sums_the_workers),
        cmocka_unit_test(progress_has_the_first_epoch_that_diverged),
        cmocka_unit_test(who_is_waited_for_is_said_when_nothing_moves),
        cmocka_unit_test(notes_that_make_no_sense_change_nothing),
        cmocka_unit_test(numbers_have_their_thousands_apart),
        cmocka_unit_test(plain_lines_come_seldom_and_only_when_new),
        cmocka_unit_test(moving_line_is_written_over_itself),
        cmocka_unit_test(ports_are_apart_and_taken_ones_are_named),
        cmocka_unit_test(folder_is_locked),
        cmocka_unit_test(a_new_run_takes_the_place_of_the_current_one),
        cmocka_unit_test(a_directory_without_its_link_is_refused),
    };
    return cmocka_run_group_tests_name("cli", tests, setup, teardown);
}
