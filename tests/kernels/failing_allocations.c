/* Preloaded into a process by test_ownership.py: counts the blocks of kernels and of the buffer pool, and lets one of their
 * allocations fail. Their calls are found by the return address: in the library of kernels, or in that of ctypes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define MAX_BLOCKS 65536

static void *(*next_malloc)(size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static atomic_flag locked = ATOMIC_FLAG_INIT;
static void *blocks[MAX_BLOCKS];
static int block_count;
static int allocations;
static int failing;

static void lock(void) { while (atomic_flag_test_and_set(&locked)) {} }
static void unlock(void) { atomic_flag_clear(&locked); }

static void forget(void *block) {
    for (int i = block_count - 1; i >= 0; i--) {
        if (blocks[i] == block) {
            blocks[i] = blocks[--block_count];
            return;
        }
    }
}

/* Fail the n-th allocation from now on, counted from 1; 0 fails none. */
void fail_allocation(int number) { lock(); allocations = 0; failing = number; unlock(); }
int allocation_count(void) { return allocations; }
int live_blocks(void) { return block_count; }

static int is_ours(void *address) {
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL) return 0;
    return strstr(info.dli_fname, "machine_code/libraries") != NULL || strstr(info.dli_fname, "libffi") != NULL;
}

static int begin(void *block) {
    lock();
    int fails = ++allocations == failing;
    if (!fails && block != NULL) forget(block);
    unlock();
    return fails;
}

static void *end(void *block) {
    lock();
    if (block_count < MAX_BLOCKS) blocks[block_count++] = block;
    unlock();
    return block;
}

void *malloc(size_t size) {
    if (next_malloc == NULL) next_malloc = (void *(*)(size_t)) dlsym(RTLD_NEXT, "malloc");
    if (!is_ours(__builtin_return_address(0))) return next_malloc(size);
    return begin(NULL) ? NULL : end(next_malloc(size));
}

void *realloc(void *block, size_t size) {
    if (next_realloc == NULL) next_realloc = (void *(*)(void *, size_t)) dlsym(RTLD_NEXT, "realloc");
    if (!is_ours(__builtin_return_address(0))) return next_realloc(block, size);
    return begin(block) ? NULL : end(next_realloc(block, size));
}

void free(void *block) {
    if (next_free == NULL) next_free = (void (*)(void *)) dlsym(RTLD_NEXT, "free");
    if (block_count > 0) {
        lock();
        forget(block);
        unlock();
    }
    next_free(block);
}
