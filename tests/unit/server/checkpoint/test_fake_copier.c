/* The fake copier keeps copier.h's rules, so that tests of a shard may believe it. */
#include "tests/lib/fake_copier.h"
#include "tests/lib/test.h"

#include <string.h>

static struct dp_copy_job *job_of(uint32_t shard)
{
    struct dp_copy_job *job = dp_copy_job_new();
    assert_non_null(job);
    job->shard = shard;
    job->shards = 4;
    job->after = 1;
    job->lsn = 2;
    job->until = 3;
    return job;
}

static void jobs_end_when_told(void **state)
{
    struct dp_fake_copier *fake = dp_fake_copier_new();
    struct dp_copier copier = dp_fake_copier_seam(fake);
    struct dp_copy_job *job[3] = {job_of(0), job_of(1), job_of(2)};
    for (int i = 0; i < 3; i++)
        copier.submit(copier.self, job[i]);
    assert_null(copier.completed(copier.self));
    assert_int_equal(dp_fake_copier_waiting(fake), 3);
    copier.cancel(copier.self, job[0]);
    assert_null(copier.completed(copier.self));
    dp_fake_copier_end(fake, 1, DP_OK);
    dp_fake_copier_end(fake, 0, DP_OK);
    dp_fake_copier_end(fake, 0, DP_FULL);
    assert_ptr_equal(copier.completed(copier.self), job[1]);
    assert_int_equal(job[1]->status, DP_OK);
    assert_string_equal(job[1]->manifest, "{\"shard\": 1}");
    assert_ptr_equal(copier.completed(copier.self), job[0]);
    assert_int_equal(job[0]->status, DP_STOPPING);
    assert_null(job[0]->manifest);
    assert_ptr_equal(copier.completed(copier.self), job[2]);
    assert_int_equal(job[2]->error.status, DP_FULL);
    for (int i = 0; i < 3; i++)
        dp_copy_job_free(&job[i]);
    dp_fake_copier_at_once(fake, true);
    job[0] = job_of(3);
    copier.submit(copier.self, job[0]);
    assert_ptr_equal(copier.completed(copier.self), job[0]);
    dp_copy_job_free(&job[0]);
    copier.submit(copier.self, job_of(0)); /* freed with the fake */
    assert_int_equal(dp_fake_copier_submitted(fake), 5);
    dp_fake_copier_free(&fake);
}

static void a_links_name_tells_order_and_cut(void **state)
{
    char name[DP_COPY_LINK_BYTES];
    dp_copy_link_name(0xabc, 2, name);
    assert_string_equal(name, "cut-0000000000000abc-2");
    dp_copy_link_name(UINT64_MAX, UINT32_MAX, name);
    assert_string_equal(name, "cut-ffffffffffffffff-4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_end_when_told),
        cmocka_unit_test(a_links_name_tells_order_and_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
