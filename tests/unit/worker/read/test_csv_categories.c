/* Goal: which columns of a CSV are categories is said, and doubted where a typo may have decided it; blanks are no part of them.
 * Method: files written by hand; what is logged is read. */
#include "common/base/log.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct dp_dataset_options options_of(enum dp_data_form form)
{
    return (struct dp_dataset_options){.form = form,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .width = 2,
                                       .fields = 2,
                                       .label = "y",
                                       .batch = 4};
}

/* What opening it writes to the log. */
static void logged(const struct dp_dataset_options *options, char *out, size_t size)
{
    FILE *log = tmpfile();
    assert_non_null(log);
    int before = dup(STDERR_FILENO);
    assert_true(before >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    dp_log_start("test", DP_LOG_INFO);
    struct dp_dataset *dataset = NULL;
    enum dp_status st = dp_dataset_open(options, &dataset, NULL);
    dp_dataset_close(&dataset);
    dp_log_start("test", DP_LOG_ERROR);
    assert_true(dup2(before, STDERR_FILENO) >= 0 && close(before) == 0);
    assert_int_equal(st, DP_OK);
    rewind(log);
    out[fread(out, 1, size - 1, log)] = '\0';
    assert_int_equal(fclose(log), 0);
}

/* Which columns became categories, and why, is said once: of the file that is trained on. */
static void found_categories_are_told(void **state)
{
    char log[4096], wide[8192] = "y";
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    const char *train = write_text("train", "y,a,b\n1,2,3\n0,-,3\n0,x,z\n");
    options.path = train;
    logged(&options, log, sizeof log);
    assert_non_null(
        strstr(log, "/train: categories, by the first cell that is no number: 'a' by '-' in line 3, 'b' by "
                    "'z' in line 4; the other columns are numbers\n"));
    struct dp_dataset *like = formats_open(&options);
    options.like = dp_dataset_schema(like);
    options.path = write_text("test", "y,a,b\n1,2,3\n");
    logged(&options, log, sizeof log);
    assert_string_equal(log, "");
    options.like = NULL;
    options.path = train;
    options.held_out = 0.3;
    logged(&options, log, sizeof log);
    assert_non_null(strstr(log, "'a' by '-'"));
    options.held = true;
    logged(&options, log, sizeof log);
    assert_string_equal(log, "");
    options.held = false;
    options.held_out = 0;
    options.categories = "a,b";
    logged(&options, log, sizeof log);
    assert_string_equal(log, "");
    options = options_of(DP_FORM_SPARSE);
    options.path = write_text("numbers", "y,a,b\n1,2,3\n");
    logged(&options, log, sizeof log);
    assert_string_equal(log, "");
    /* As many as a line holds. */
    size_t len = strlen(wide);
    for (int i = 0; i < 400; i++)
        len += (size_t)snprintf(wide + len, sizeof wide - len, ",column-%d", i);
    len += (size_t)snprintf(wide + len, sizeof wide - len, "\n1");
    for (int i = 0; i < 400; i++)
        len += (size_t)snprintf(wide + len, sizeof wide - len, ",x");
    options.path = write_text("wide", wide);
    logged(&options, log, sizeof log);
    assert_non_null(strstr(log, "'column-0' by 'x' in line 2, 'column-1' by"));
    assert_non_null(strstr(log, ", ...; the other columns are numbers\n"));
}

/* A column of numbers but for a cell or two is doubted, however it was opened; one of texts among which are numbers is not. */
static void a_typo_is_doubted(void **state)
{
    static const char text[] = "y,a,b,c\n1,2,x,1\n0,4o,3,2\n0,5,z,\n1,6,z,4\n";
    char where[300];
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    struct dp_understood u;
    options.path = write_text("t", text);
    options.cache = files_dir;
    (void)snprintf(where, sizeof where, "%s:3: '4o' is no number, so column 'a' became categories",
                   options.path);
    for (int cached = 0; cached < 2; cached++) {
        struct dp_dataset *dataset = formats_open(&options);
        dp_dataset_understood(dataset, &options, &u);
        assert_int_equal(u.notes, 1);
        assert_ptr_equal(strstr(u.note[0], where), u.note[0]);
        assert_non_null(strstr(u.note[0], "though 3 of the 4 cells looked at are numbers"));
        assert_non_null(strstr(u.note[0],
                               "If that is a typo, correct the cell or leave it empty, and run again with "
                               "--fresh; if not, keep the column as it is (--categories 'a' "));
    }
    options.path = write_text("t", "y,a\n1,2\n0,-\n0,5\n");
    dp_dataset_understood(formats_open(&options), &options, &u);
    assert_non_null(strstr(u.note[0], "leave it empty (as a missing number: --missing '-'), and run again"));
    options.path = write_text("t", text);
    options.categories = "a";
    struct dp_dataset *dataset = formats_open(&options);
    dp_dataset_understood(dataset, &options, &u);
    assert_int_equal(u.notes, 0);
}

/* "Rome" with blanks around it is the same category, in a file to be scored too, whose key and name are without
 * them. */
static void categories_are_trimmed(void **state)
{
    static const char text[] = "y,a,city\n1,2, Rome\n0,3,\"Rome \"\n0,3,Rome\n0,3, \n1,3,\n";
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.width = options.fields = 1;
    options.batch = 5;
    options.path = write_text("t", text);
    struct dp_dataset *train = formats_open(&options);
    options.like = dp_dataset_schema(train);
    struct dp_dataset *scored = formats_open(&options);
    formats_same(train, scored, 0);
    struct dp_batch *b = formats_filled(scored, 0, 0);
    assert_int_equal(b->group[0].distinct, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(found_categories_are_told),
        FILES_TEST(a_typo_is_doubted),
        FILES_TEST(categories_are_trimmed),
    };
    return cmocka_run_group_tests_name("csv categories", tests, NULL, NULL);
}
