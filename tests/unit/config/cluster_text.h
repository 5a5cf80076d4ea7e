/* Cluster text: a cluster file that a test writes and reads. */
#ifndef DP_TESTS_UNIT_CONFIG_CLUSTER_TEXT_H
#define DP_TESTS_UNIT_CONFIG_CLUSTER_TEXT_H

#include "tests/lib/test.h"

#include "common/config/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libconfig 1.5 forgets the buffer of a string that never ends; the process that reads such a file ends
 * anyway. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:strbuf_append\n";
}

static char dir[] = "/tmp/dp_test_cluster_XXXXXX";
static char file_path[64];

static void write_file(const char *text, size_t size)
{
    FILE *f = fopen(file_path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static enum dp_status read_text(const char *text, struct dp_cluster **out, struct dp_error *err)
{
    write_file(text, strlen(text));
    return dp_cluster_read(file_path, out, err);
}

#define TOP                                                                                                  \
    "name = \"t\";\n"                                                                                        \
    "model = \"logistic\";\n"
#define FIFTY    "01234567890123456789012345678901234567890123456789"
#define SERVERS  "servers = ({ host = \"127.0.0.1\"; port = 5700; store = \"s\"; });\n"
#define DATA     "data = { train = \"a\"; };\n"
#define GOOD     TOP SERVERS DATA
#define TRAIN(x) GOOD "training = {\n" x "\n};\n"
#define OPT(x)   TRAIN("optimizer = {\n" x "\n};")

struct bad {
    const char *text;
    const char *line; /* ":3: " */
    const char *key;
};

static int setup(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(file_path, sizeof file_path, "%s/cluster.conf", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)unlink(file_path);
    return rmdir(dir);
}

#endif
