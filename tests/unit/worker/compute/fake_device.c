#include "fake_device.h"

#include "tests/lib/test.h"

static void inside(const struct fake_device *fake, const void *at)
{
    const char *p = at;
    assert_true(fake->block && p >= fake->block && p < fake->block + fake->bytes);
}

static void outside(const struct fake_device *fake, const void *at)
{
    const char *p = at;
    assert_true(p < fake->block || p >= fake->block + fake->bytes);
}

static void fake_close(void *self)
{
    struct fake_device *fake = self;
    assert_null(fake->block);
}

static enum dp_status fake_alloc(void *self, size_t bytes, void **out, struct dp_error *err)
{
    struct fake_device *fake = self;
    fake->bytes = bytes;
    if (fake->fail_alloc)
        return dp_fail(err, DP_NOMEM, "fake device is full");
    assert_null(fake->block);
    fake->allocs++;
    enum dp_status st = fake->cpu->alloc(NULL, bytes, out, err);
    fake->block = *out;
    return st;
}

static void fake_release(void *self, void *block)
{
    struct fake_device *fake = self;
    inside(fake, block);
    fake->cpu->release(NULL, block);
    fake->block = NULL;
}

static enum dp_status fake_copy_in(void *self, void *device, const void *host, size_t bytes,
                                   struct dp_error *err)
{
    struct fake_device *fake = self;
    inside(fake, device);
    inside(fake, (char *)device + bytes - 1);
    outside(fake, host);
    if (++fake->copies == fake->fail_copy_at)
        return dp_fail(err, DP_IO, "fake copy failed");
    return fake->cpu->copy_in(NULL, device, host, bytes, err);
}

static enum dp_status fake_copy_out(void *self, void *host, const void *device, size_t bytes,
                                    struct dp_error *err)
{
    struct fake_device *fake = self;
    inside(fake, device);
    outside(fake, host);
    if (++fake->copies == fake->fail_copy_at)
        return dp_fail(err, DP_IO, "fake copy failed");
    return fake->cpu->copy_out(NULL, host, device, bytes, err);
}

static enum dp_status fake_zero(void *self, void *block, size_t bytes, struct dp_error *err)
{
    inside(self, block);
    return ((struct fake_device *)self)->cpu->zero(NULL, block, bytes, err);
}

static enum dp_status fake_finish(void *self, struct dp_error *err)
{
    return ((struct fake_device *)self)->fail_finish ? dp_fail(err, DP_IO, "fake kernel failed") : DP_OK;
}

static void fake_gather_sum(void *self, const struct dp_entries *e, const float *p, uint32_t width, bool mean,
                            float *out)
{
    inside(self, e->offsets);
    inside(self, e->slots);
    inside(self, e->values);
    inside(self, p);
    inside(self, out);
    ((struct fake_device *)self)->cpu->gather_sum(NULL, e, p, width, mean, out);
}

static void fake_gather_sum_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
                                 bool mean, float *dp, bool add)
{
    assert_false(mean);
    inside(self, e->by_slot);
    inside(self, e->example_of);
    inside(self, e->slot_offsets);
    inside(self, dp);
    assert_int_equal(e->slot_offsets[0], 0);
    assert_int_equal(e->slot_offsets[e->distinct], e->count);
    for (uint32_t s = 0; s < e->distinct; s++) {
        for (uint32_t c = 0; c < width; c++) {
            float sum = add ? dp[(size_t)s * width + c] : 0;
            for (uint32_t at = e->slot_offsets[s]; at < e->slot_offsets[s + 1]; at++) {
                uint32_t j = e->by_slot[at], i = e->example_of[j];
                assert_int_equal(e->slots[j], s);
                assert_true(at == e->slot_offsets[s] || e->by_slot[at - 1] < j);
                assert_true(e->offsets[i] <= j && j < e->offsets[i + 1]);
                sum += e->values[j] * dout[(size_t)i * width + c];
            }
            dp[(size_t)s * width + c] = sum;
        }
    }
}

static void fake_matmul(void *self, const float *x, const float *p, uint32_t examples, uint32_t k,
                        uint32_t width, float *out)
{
    inside(self, x);
    inside(self, p);
    inside(self, out);
    ((struct fake_device *)self)->cpu->matmul(NULL, x, p, examples, k, width, out);
}

static void fake_matmul_back_p(void *self, const float *x, const float *dout, uint32_t examples, uint32_t k,
                               uint32_t width, float *dp, bool add)
{
    inside(self, x);
    inside(self, dout);
    inside(self, dp);
    ((struct fake_device *)self)->cpu->matmul_back_p(NULL, x, dout, examples, k, width, dp, add);
}

static void fake_logistic_loss(void *self, const float *x, const float *labels, const float *weights,
                               uint32_t examples, float *loss, float *dx)
{
    inside(self, x);
    inside(self, labels);
    inside(self, loss);
    ((struct fake_device *)self)->cpu->logistic_loss(NULL, x, labels, weights, examples, loss, dx);
}

void fake_device_init(struct fake_device *fake, struct dp_backend *out)
{
    struct dp_backend cpu;
    assert_int_equal(dp_backend_cpu(1, &cpu, NULL), DP_OK);
    *fake = (struct fake_device){.ops = *cpu.ops, .cpu = cpu.ops};
    fake->ops.name = "fake";
    fake->ops.host_memory = false;
    fake->ops.wants_by_slot = true;
    fake->ops.close = fake_close;
    fake->ops.alloc = fake_alloc;
    fake->ops.release = fake_release;
    fake->ops.copy_in = fake_copy_in;
    fake->ops.copy_out = fake_copy_out;
    fake->ops.zero = fake_zero;
    fake->ops.finish = fake_finish;
    fake->ops.gather_sum = fake_gather_sum;
    fake->ops.gather_sum_back = fake_gather_sum_back;
    fake->ops.matmul = fake_matmul;
    fake->ops.matmul_back_p = fake_matmul_back_p;
    fake->ops.logistic_loss = fake_logistic_loss;
    *out = (struct dp_backend){&fake->ops, fake};
}
