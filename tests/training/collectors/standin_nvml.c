/* A management library of two GPUs that answer with fixed numbers; the second lacks sensors. */
#include <stdint.h>
#include <string.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
typedef struct {
    unsigned field, scope; long long time, latency; int kind, status;
    union { double d; unsigned ui; unsigned long long ull; } value;
} field;

static int fails(void *device) { return (intptr_t)device == 2; }

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) {
    *device = (void *)(intptr_t)(i + 1); return 0;
}
int nvmlSystemGetDriverVersion(char *text, unsigned n) { strncpy(text, "580.1", n); return 0; }
int nvmlDeviceGetName(void *d, char *text, unsigned n) { strncpy(text, "H-0", n); return 0; }
int nvmlDeviceGetUUID(void *d, char *text, unsigned n) {
    strncpy(text, fails(d) ? "GPU-bbbb" : "GPU-aaaa", n); return 0;
}
int nvmlDeviceGetUtilizationRates(void *d, utilization *u) {
    u->gpu = 97; u->memory = 41; return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *d, memory *m) {
    if (m->version != (sizeof(memory) | 2 << 24)) return 25;
    m->total = 1000; m->reserved = 100; m->used = 250; m->free = 650; return 0;
}
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 654321; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { *mw = 700000; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
    *mj = 12345678901ULL; return fails(d) ? 3 : 0;
}
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz) {
    *mhz = kind == 1 ? 1980 : 3201; return 0;
}
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c) { *c = 55; return fails(d) ? 15 : 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *bits) {
    *bits = 0x4 | 0x40; return 0;
}
int nvmlDeviceGetFieldValues(void *d, int n, field *f) {
    f->status = 0;
    if (f->field == 82) { f->kind = 1; f->value.ui = fails(d) ? 0 : 66; return 0; }
    if (f->scope != 0xFFFFFFFFu || fails(d)) { f->status = 3; return 0; }
    f->kind = 3; f->value.ull = f->field == 138 ? 5000000000ULL : 6000000000ULL; return 0;
}
