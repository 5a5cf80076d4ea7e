/* Goal: labels of a CSV mean the same in every file, and are said. Method: files written by hand, through the whole reader. */
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_dataset_options options_of(enum dp_labels labels, uint32_t classes)
{
    return (struct dp_dataset_options){.form = DP_FORM_SPARSE,
                                       .labels = labels,
                                       .classes = classes,
                                       .label = "y",
                                       .label_base = DP_LABEL_BASE_AUTO,
                                       .standardize = true,
                                       .batch = 64};
}

static void labels_are(const struct dp_dataset *dataset, const char *want)
{
    struct dp_batch *batch = formats_batch(dataset);
    char got[64] = "";
    dp_dataset_fill(dataset, 0, 0, batch);
    for (uint32_t i = 0; i < batch->examples; i++)
        got[i] = (char)('0' + (int)batch->labels[i]);
    assert_string_equal(got, want);
}

/* A training file's labels, what is said of them, and the same by a cache, by what is kept, and in a test file. */
static void meaning(enum dp_labels labels, uint32_t classes, const char *train, const char *want,
                    const char *said, const char *test, const char *test_want)
{
    struct dp_error err = {0};
    char text[320], *kept = NULL;
    struct dp_dataset_options options = options_of(labels, classes);
    options.cache = files_dir;
    const char *other = write_text("test", test);
    options.path = write_text("train", train);
    for (int open = 0; open < 2; open++) { /* the second out of the cache */
        struct dp_dataset *a = formats_open(&options);
        labels_are(a, want);
        dp_schema_labels_text(dp_dataset_schema(a), labels == DP_LABELS_BINARY, classes, text, sizeof text);
        assert_string_equal(text, said);
        free(kept);
        assert_int_equal(dp_schema_write(dp_dataset_schema(a), &kept, &err), DP_OK);
    }
    options.path = other;
    options.columns_path = write_text("kept", kept);
    struct dp_dataset *b = formats_open(&options);
    labels_are(b, test_want);
    free(kept);
}

static void two_texts(void **state)
{
    meaning(DP_LABELS_BINARY, 0, "y,a\n>50K,1\n<=50K,2\n>50K,3\n", "101",
            "'<=50K' is 0, '>50K' is 1 (positive)", "a,y\n3,\">50K\"\n", "1");
    meaning(DP_LABELS_BINARY, 0, "y,a\nYES,1\n no ,2\nYes,3\n", "101", "'no' is 0, 'YES' is 1 (positive)",
            "y,a\nNo,1\nyes,2\n", "01");
    meaning(DP_LABELS_BINARY, 0, "y,a\nTrue,1\nFalse,2\n", "10", "'False' is 0, 'True' is 1 (positive)",
            "y,a\ntrue,1\n", "1");
    meaning(DP_LABELS_BINARY, 0, "y,a\nt,1\nf,2\n", "10", "'f' is 0, 't' is 1 (positive)", "y,a\nF,1\n", "0");
    meaning(DP_LABELS_BINARY, 0, "y,a\nn,1\nY,2\n", "01", "'n' is 0, 'Y' is 1 (positive)", "y,a\ny,1\n", "1");
    meaning(DP_LABELS_BINARY, 0, "y,a\n1,1\nx,2\n", "01", "'1' is 0, 'x' is 1 (positive)", "y,a\nx,1\n", "1");
    /* Numbers are numbers, however they are written. */
    meaning(DP_LABELS_BINARY, 0, "y,a\n1,1\n1.0,2\n0,3\n0.0,3\n1e0,4\n", "11001", "", "y,a\n1.00,1\n", "1");
    meaning(DP_LABELS_BINARY, 0, "y,a\n1,1\n2,2\n", "01", "'1' is 0, '2' is 1 (positive)", "y,a\n2,1\n", "1");
}

static void several_texts(void **state)
{
    meaning(DP_LABELS_CLASS, 3, "a,y\n1,setosa\n2,virginica\n3,versicolor\n4,setosa\n", "0210",
            "'setosa' is 0, 'versicolor' is 1, 'virginica' is 2", "y,a\nvirginica,1\n", "2");
    meaning(DP_LABELS_CLASS, 5, "a,y\n1,b\n2,a\n", "10", "'a' is 0, 'b' is 1", "y,a\nb,1\n", "1");
    meaning(DP_LABELS_CLASS, 3, "a,y\n1,yes\n2,Yes\n3,no\n", "201", "'Yes' is 0, 'no' is 1, 'yes' is 2",
            "y,a\nYes,1\n", "0");
    meaning(DP_LABELS_CLASS, 3, "a,y\n1,1\n2,3\n3,2\n", "021", "1 .. 3 are classes 0 .. 2", "y,a\n3,1\n",
            "2");
}

static void refused_labels(void **state)
{
    struct dp_dataset_options two = options_of(DP_LABELS_BINARY, 0), three = options_of(DP_LABELS_CLASS, 3);
    formats_refused(two, "y,a\nno,1\nyes,2\nmaybe,3\n", 4, DP_DATA,
                    "column 'y': label 'maybe' is one more than the 2 that two classes have, after 'no' in "
                    "line 2, 'yes' in line 3");
    formats_refused(two, "y,a\n0,1\n1,2\nO,3\n", 4, DP_DATA, "label 'O' is one more than the 2");
    formats_refused(two, "y,a\nbad,1\n\nbad,2\ngooood,3\ngood,4\n", 6, DP_DATA,
                    "label 'good' is one more than the 2 that two classes have, after 'bad' in line 2, "
                    "'gooood' in line 5 (");
    formats_refused(two, "y,a\nno,1\nNA,2\n", 3, DP_DATA, "column 'y': expected a label, found 'NA'");
    formats_refused(two, "y,a\n1,1\n3,2\n", 3, DP_DATA, "label 3: expected 0 or 1");
    formats_refused(three, "y,a\na,1\nb,2\nc,3\nd,4\n", 5, DP_DATA,
                    "label 'd' is one more than the 3 classes of the model, after 'a' in line 2, 'b' in line "
                    "3, 'c' in line 4");
    formats_refused(options_of(DP_LABELS_ANY, 0), "y,a\nx,1\n", 2, DP_DATA, "expected a label (a number)");
    two.label_base = 1;
    formats_refused(two, "y,a\na,1\nb,2\n", 0, DP_ARGUMENT,
                    "labels are texts such as 'a', which have no base");
}

/* A test file with other labels is refused; one that is only scored may say anything. */
static void other_files(void **state)
{
    struct dp_dataset_options options = options_of(DP_LABELS_BINARY, 0);
    const char *train = write_text("train", "y,a\nbad,1\ngood,2\n");
    options.path = train;
    struct dp_dataset *a = formats_open(&options);
    options.like = dp_dataset_schema(a);
    formats_refused(options, "y,a\ngood,1\nugly,1\n", 3, DP_DATA,
                    "column 'y': label 'ugly': expected one of the training file's: 'bad', 'good'");
    formats_refused(options, "y,a\n1,1\n", 2, DP_DATA, "label '1': expected one of the training file's");
    formats_refused(options, "y,a\nGood,1\n", 2, DP_DATA, "label 'Good': expected");
    formats_refused(options, "y,a\n,1\n", 2, DP_DATA, "label '': expected");
    options.like = NULL;
    train = write_text("train", "y,a\nno,1\nyes,2\n");
    options.path = train;
    a = formats_open(&options);
    options.like = dp_dataset_schema(a);
    options.path = write_text("test", "y,a\nYES,1\nyes,2\n"); /* one class will do in a test file */
    struct dp_dataset *one = formats_open(&options);
    assert_int_equal(dp_dataset_examples(one), 2);
    options.scored = true;
    options.labels = DP_LABELS_ANY;
    options.path = write_text("scored", "y,a\nugly,1\n,2\n?,3\n");
    struct dp_dataset *b = formats_open(&options);
    assert_int_equal(dp_dataset_examples(b), 3);
}

/* libsvm: by the training file, too. */
static void numbers_of_libsvm(void **state)
{
    struct dp_dataset_options options = options_of(DP_LABELS_CLASS, 3);
    options.label = NULL;
    options.cache = files_dir;
    const char *path = write_text("train", "1 1:1\n3 1:2\n2 1:3\n");
    for (int open = 0; open < 2; open++) {
        options.path = path;
        options.like = NULL;
        options.label_base = DP_LABEL_BASE_AUTO;
        struct dp_dataset *a = formats_open(&options);
        labels_are(a, "021");
        assert_int_equal(dp_dataset_schema(a)->label_base, 1);
        options.like = dp_dataset_schema(a);
        options.path = write_text("test", "1 1:1\n2 1:2\n");
        struct dp_dataset *b = formats_open(&options);
        labels_are(b, "01");
        formats_refused(options, "1 1:1\n0 1:1\n", 2, DP_DATA, "label 0: expected a class from 1 to 3");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(two_texts), FILES_TEST(several_texts),
                                       FILES_TEST(refused_labels), FILES_TEST(other_files),
                                       FILES_TEST(numbers_of_libsvm)};
    return cmocka_run_group_tests_name("label texts", tests, NULL, NULL);
}
