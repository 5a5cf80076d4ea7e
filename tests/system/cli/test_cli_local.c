/* local: children that end well, badly, late or never; nobody is left behind. */
#include "tests/lib/test.h"

#include "deploy/supervise/local.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/dp_test_local_XXXXXX";
static char log_path[64];

static struct dp_local *opened(void)
{
    struct dp_local *local = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_local_open(&local, &err), DP_OK);
    return local;
}

static void start(struct dp_local *local, enum dp_local_role role, const char *script)
{
    struct dp_error err = {0};
    const char *const argv[] = {"/bin/sh", "-c", script, log_path, NULL}; /* $0: the log */
    assert_int_equal(dp_local_start(local, role, "child 7", argv, log_path, -1, &err), DP_OK);
}

/* Until nobody of the role runs; 10 s at most. */
static void await(struct dp_local *local, enum dp_local_role role)
{
    for (int i = 0; i < 100 && dp_local_running(local, role); i++)
        dp_local_wait(local, 100);
    assert_int_equal(dp_local_running(local, role), 0);
}

/* Until the child has written a line: it is past whatever it did before. */
static long first_line(struct dp_local *local)
{
    for (int i = 0; i < 1000; i++) {
        long number = 0;
        FILE *log = fopen(log_path, "r");
        assert_non_null(log);
        int got = fscanf(log, "%ld\n", &number);
        (void)fclose(log);
        if (got == 1)
            return number;
        dp_local_wait(local, 10);
    }
    fail_msg("the child has said nothing");
    return 0;
}

static char *explained(const struct dp_local *local)
{
    static char text[4096];
    memset(text, 0, sizeof text);
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    dp_local_explain(local, file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void worker_may_end_with_0_only(void **state)
{
    struct dp_local *local = opened();
    start(local, DP_LOCAL_WORKER, "exit 0");
    await(local, DP_LOCAL_WORKER);
    assert_false(dp_local_failed(local));
    start(local, DP_LOCAL_WORKER, "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done; exit 3");
    await(local, DP_LOCAL_WORKER);
    assert_true(dp_local_failed(local));
    assert_false(dp_local_server_failed(local));
    const char *text = explained(local);
    assert_non_null(strstr(text, "child 7 ended with status 3"));
    assert_non_null(strstr(text, log_path));
    assert_non_null(strstr(text, "    line 9\n"));
    assert_null(strstr(text, "line 1\n")); /* the end of it only */
    dp_local_close(&local);
    assert_null(local);
    dp_local_close(&local);
}

/* Planted: all workers are spared with one; the first is. */
static void who_is_spared_may_end_anyhow(void **state)
{
    struct dp_local *local = opened();
    char text[256];
    start(local, DP_LOCAL_WORKER, "exit 0");
    start(local, DP_LOCAL_WORKER, "exit 3");
    start(local, DP_LOCAL_WORKER, "exit 4");
    await(local, DP_LOCAL_WORKER);
    assert_false(dp_local_news(local, text, sizeof text));
    dp_local_spare_worker(local, 1);
    assert_true(dp_local_news(local, text, sizeof text));
    assert_non_null(strstr(text, "ended with status 3; the others continue without it"));
    assert_true(dp_local_failed(local));
    assert_non_null(strstr(explained(local), "ended with status 4"));
    dp_local_spare_worker(local, 2);
    assert_false(dp_local_failed(local));
    assert_true(dp_local_news(local, text, sizeof text));
    dp_local_spare_worker(local, 2);
    assert_false(dp_local_news(local, text, sizeof text));
    dp_local_close(&local);
    local = opened();
    start(local, DP_LOCAL_WORKER, "exit 3");
    await(local, DP_LOCAL_WORKER);
    dp_local_spare_worker(local, 0);
    assert_true(dp_local_failed(local));
    dp_local_close(&local);
}

static void server_may_not_end_by_itself(void **state)
{
    struct dp_local *local = opened();
    start(local, DP_LOCAL_SERVER, "exit 0");
    await(local, DP_LOCAL_SERVER);
    assert_true(dp_local_failed(local) && dp_local_server_failed(local));
    dp_local_close(&local);
    local = opened();
    start(local, DP_LOCAL_SERVER, "kill -SEGV $$");
    await(local, DP_LOCAL_SERVER);
    assert_non_null(strstr(explained(local), "was killed by signal 11"));
    dp_local_close(&local);
}

static void stop_asks_first(void **state)
{
    struct dp_local *local = opened();
    start(local, DP_LOCAL_SERVER, "trap 'echo closing; exit 0' TERM; echo 1; while :; do sleep 0.05; done");
    (void)first_line(local);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_SERVER, 10000), DP_OK);
    assert_false(dp_local_failed(local));
    char line[64] = "";
    FILE *log = fopen(log_path, "r");
    assert_non_null(fgets(line, sizeof line, log));
    assert_non_null(fgets(line, sizeof line, log));
    assert_string_equal(line, "closing\n");
    (void)fclose(log);
    dp_local_close(&local);
    /* A server that does not close well is said so. */
    local = opened();
    start(local, DP_LOCAL_SERVER, "trap 'exit 5' TERM; echo 1; while :; do sleep 0.05; done");
    (void)first_line(local);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_SERVER, 10000), DP_IO);
    dp_local_close(&local);
}

static void the_deaf_are_killed_with_all_they_started(void **state)
{
    struct dp_local *local = opened();
    /* The number is that of a grandchild. */
    start(local, DP_LOCAL_SERVER, "trap '' TERM; sleep 1000 & echo $!; wait");
    pid_t grandchild = (pid_t)first_line(local);
    assert_int_equal(kill(grandchild, 0), 0);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_SERVER, 200), DP_TIMEOUT);
    assert_int_equal(dp_local_running(local, DP_LOCAL_SERVER), 0);
    /* Killed; it may stay a zombie until its new parent looks. */
    char path[64], stat[256] = "";
    for (int i = 0; i < 500; i++) {
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)grandchild);
        FILE *file = fopen(path, "r");
        if (!file || !fgets(stat, sizeof stat, file) || strstr(stat, ") Z")) {
            stat[0] = '\0';
            if (file)
                (void)fclose(file);
            break;
        }
        (void)fclose(file);
        dp_local_wait(local, 10);
    }
    assert_string_equal(stat, "");
    dp_local_close(&local);
}

static void a_second_signal_hurries(void **state)
{
    struct dp_local *local = opened();
    start(local, DP_LOCAL_SERVER, "trap '' TERM; echo 1; while :; do sleep 0.05; done");
    (void)first_line(local);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    for (int i = 0; i < 100 && !dp_local_signal(local); i++)
        dp_local_wait(local, 100);
    assert_int_equal(dp_local_signal(local), SIGINT);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_SERVER, 60000), DP_TIMEOUT);
    assert_int_equal(dp_local_signal(local), SIGINT);
    dp_local_close(&local);
}

/* The signal comes when the end has begun by itself: it is the first one. */
static void the_first_signal_lets_an_end_go_on(void **state)
{
    struct dp_local *local = opened();
    start(local, DP_LOCAL_SERVER,
          "trap 'kill -INT $PPID; sleep 0.5; exit 0' TERM; echo 1; while :; do sleep 0.05; done");
    (void)first_line(local);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_SERVER, 60000), DP_OK);
    assert_int_equal(dp_local_signal(local), SIGINT);
    dp_local_close(&local);
}

static void what_cannot_be_executed_says_so(void **state)
{
    struct dp_local *local = opened();
    struct dp_error err = {0};
    const char *const argv[] = {"/nonexistent/program", NULL};
    assert_int_equal(dp_local_start(local, DP_LOCAL_WORKER, "w", argv, "/nonexistent/log", -1, &err), DP_IO);
    assert_non_null(strstr(err.text, "/nonexistent/log"));
    assert_int_equal(dp_local_start(local, DP_LOCAL_WORKER, "w", argv, log_path, -1, &err), DP_OK);
    await(local, DP_LOCAL_WORKER);
    assert_non_null(strstr(explained(local), "status 127"));
    assert_non_null(strstr(explained(local), "/nonexistent/program: cannot be executed"));
    dp_local_close(&local);
}

static char *log_text(const char *path)
{
    static char text[4096];
    FILE *log = fopen(path, "re");
    assert_non_null(log);
    text[fread(text, 1, sizeof text - 1, log)] = '\0';
    assert_int_equal(fclose(log), 0);
    return text;
}

/* Planted: O_TRUNC in every case; the tail of the whole file. */
static void logs_go_on_from_run_to_run(void **state)
{
    struct dp_local *local = opened();
    char title[16], older[sizeof log_path + 2];
    (void)unlink(log_path);
    for (int run = 1; run <= 2; run++) {
        (void)snprintf(title, sizeof title, "run %d", run);
        dp_local_title(local, title);
        start(local, DP_LOCAL_WORKER, run == 1 ? "echo first" : "echo second; exit 3");
        await(local, DP_LOCAL_WORKER);
    }
    const char *text = log_text(log_path), *second = strstr(text, "\n==== run 2, 2");
    assert_true(strncmp(text, "==== run 1, 2", 13) == 0 && strstr(text, "\nfirst\n") != NULL);
    assert_true(second && strstr(second, "\nsecond\n"));
    assert_non_null(strstr(explained(local), "second"));
    assert_null(strstr(explained(local), "first")); /* that was another run's */
    assert_null(strstr(explained(local), "===="));
    dp_local_close(&local);

    assert_int_equal(truncate(log_path, (16 << 20) + 1), 0); /* too long: it is put aside */
    local = opened();
    dp_local_title(local, "run 3");
    start(local, DP_LOCAL_WORKER, "echo third");
    await(local, DP_LOCAL_WORKER);
    assert_true(strncmp(log_text(log_path), "==== run 3, 2", 13) == 0);
    (void)snprintf(older, sizeof older, "%s.1", log_path);
    assert_non_null(strstr(log_text(older), "second"));
    assert_int_equal(unlink(older), 0);
    dp_local_close(&local);
}

static int setup(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(log_path, sizeof log_path, "%s/log", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)unlink(log_path);
    return rmdir(dir);
}

/* The news so far, as one text. */
static const char *news_of(struct dp_local *local)
{
    static char text[4096];
    char line[256];
    size_t at = 0;
    text[0] = '\0';
    while (dp_local_news(local, line, sizeof line))
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\n", line);
    return text;
}

static void who_dies_is_started_again_until_the_limit(void **state)
{
    struct dp_local *local = opened();
    dp_local_restart_dead(local, 3);
    /* It dies twice, then ends well; its log goes on. */
    start(local, DP_LOCAL_WORKER, "echo life; [ $(grep -c life \"$0\") -lt 3 ] && kill -KILL $$; exit 0");
    for (int i = 0; i < 200 && dp_local_running(local, DP_LOCAL_WORKER); i++) {
        assert_false(dp_local_failed(local));
        dp_local_wait(local, 100);
    }
    assert_int_equal(dp_local_running(local, DP_LOCAL_WORKER), 0);
    assert_false(dp_local_failed(local));
    const char *news = news_of(local);
    assert_non_null(strstr(news, "child 7 was killed by signal 9 (Killed); it is started again in 0.1 s "
                                 "(restart 1 of 3 within 10 minutes)"));
    assert_non_null(strstr(news, "in 0.2 s (restart 2 of 3"));
    assert_string_equal(news_of(local), "");
    /* One restart is left for all. */
    start(local, DP_LOCAL_SERVER, "kill -KILL $$");
    await(local, DP_LOCAL_SERVER);
    assert_true(dp_local_server_failed(local));
    news = news_of(local);
    assert_non_null(strstr(news, "restart 3 of 3"));
    assert_non_null(strstr(news, "is not started again: 3 restarts within 10 minutes are the limit"));
    dp_local_close(&local);
}

/* The same abort again is given up. Another signal, another last line, or a kill by others in between is another cause. */
static void a_fault_that_repeats_is_given_up(void **state)
{
    struct dp_local *local = opened();
    const char *news;
    dp_local_restart_dead(local, 20);
    start(local, DP_LOCAL_SERVER,
          "echo life; case $(grep -c life \"$0\") in 1) echo a; kill -ABRT $$;; 2) echo b; kill -ABRT $$;; "
          "3) echo b; kill -SEGV $$;; 4) echo b; kill -KILL $$;; 5) echo b; kill -SEGV $$;; "
          "*) echo 2026-01-01T00:00:0$(grep -c life \"$0\").000Z error child 7: no files left; kill -ABRT "
          "$$;; esac");
    await(local, DP_LOCAL_SERVER);
    assert_true(dp_local_server_failed(local));
    news = news_of(local);
    assert_non_null(strstr(news, "restart 6 of 20"));
    assert_null(strstr(news, "restart 7 of 20"));
    assert_non_null(strstr(news, "signal 6 (Aborted), twice in the same way, and is not started again"));
    assert_non_null(strstr(explained(local), "no files left"));
    dp_local_close(&local);
}

static void who_refuses_is_not_started_again(void **state)
{
    struct dp_local *local = opened();
    dp_local_restart_dead(local, 20);
    start(local, DP_LOCAL_SERVER, "echo the store is damaged; exit 2");
    await(local, DP_LOCAL_SERVER);
    assert_true(dp_local_server_failed(local));
    assert_non_null(strstr(explained(local), "the store is damaged"));
    assert_string_equal(news_of(local), "");
    dp_local_close(&local);
}

/* What a program logs last as its error is all that is shown, once, without the prefix of its log. */
static void who_says_why_is_quoted(void **state)
{
    struct dp_local *local = opened();
    start(local, DP_LOCAL_WORKER,
          "echo 2026-01-01T00:00:00.000Z info child 7: begins;"
          "echo 2026-01-01T00:00:00.000Z error child 7: the label is missing; exit 2");
    await(local, DP_LOCAL_WORKER);
    const char *text = explained(local);
    assert_ptr_equal(strstr(text, "downpour: child 7: the label is missing\ndownpour: its log is "), text);
    assert_null(strstr(text, "begins"));
    dp_local_close(&local);
}

static void stopping_ends_the_wait_for_a_restart(void **state)
{
    struct dp_local *local = opened();
    dp_local_restart_dead(local, 20);
    for (int i = 0; i < 3; i++) {
        start(local, DP_LOCAL_SERVER, "kill -KILL $$");
        for (int k = 0; k < 100 && !strstr(news_of(local), "is started again"); k++)
            dp_local_wait(local, 100);
    }
    assert_int_equal(dp_local_running(local, DP_LOCAL_SERVER), 3);
    (void)dp_local_stop(local, DP_LOCAL_SERVER, 10000);
    assert_int_equal(dp_local_running(local, DP_LOCAL_SERVER), 0);
    dp_local_wait(local, 300);
    assert_int_equal(dp_local_running(local, DP_LOCAL_SERVER), 0);
    dp_local_close(&local);
}

/* While workers are asked to stop, the server they still talk to dies. Planted: it is started again. */
static void who_dies_during_a_stop_stays_dead(void **state)
{
    struct dp_local *local = opened();
    dp_local_restart_dead(local, 20);
    start(local, DP_LOCAL_SERVER,
          "[ -e $0.ask ] && exec sleep 60; echo $$; echo $$ > $0.pid; until [ -e $0.ask ]; do sleep 0.05; "
          "done; "
          "kill -KILL $$");
    (void)first_line(local);
    start(local, DP_LOCAL_WORKER,
          "trap 'touch $0.ask; while kill -0 $(cat $0.pid); do sleep 0.05; done; sleep 0.5; exit 0' TERM; "
          "echo $$; "
          "while :; do sleep 0.05; done");
    (void)first_line(local);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_WORKER, 20000), DP_OK);
    assert_int_equal(dp_local_running(local, DP_LOCAL_SERVER), 0);
    assert_int_equal(dp_local_stop(local, DP_LOCAL_SERVER, 10000), DP_IO); /* it says how that one ended */
    dp_local_close(&local);
    char path[80];
    (void)snprintf(path, sizeof path, "%s.ask", log_path);
    assert_int_equal(remove(path), 0);
    (void)snprintf(path, sizeof path, "%s.pid", log_path);
    assert_int_equal(remove(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_may_end_with_0_only),
        cmocka_unit_test(who_dies_is_started_again_until_the_limit),
        cmocka_unit_test(a_fault_that_repeats_is_given_up),
        cmocka_unit_test(who_refuses_is_not_started_again),
        cmocka_unit_test(who_says_why_is_quoted),
        cmocka_unit_test(stopping_ends_the_wait_for_a_restart),
        cmocka_unit_test(who_dies_during_a_stop_stays_dead),
        cmocka_unit_test(who_is_spared_may_end_anyhow),
        cmocka_unit_test(server_may_not_end_by_itself),
        cmocka_unit_test(stop_asks_first),
        cmocka_unit_test(the_deaf_are_killed_with_all_they_started),
        cmocka_unit_test(a_second_signal_hurries),
        cmocka_unit_test(the_first_signal_lets_an_end_go_on),
        cmocka_unit_test(what_cannot_be_executed_says_so),
        cmocka_unit_test(logs_go_on_from_run_to_run),
    };
    return cmocka_run_group_tests_name("local", tests, setup, teardown);
}
