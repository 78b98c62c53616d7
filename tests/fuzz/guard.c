/* A malloc for tests, preloaded: while it is switched on, every allocation ends at a page that may not be touched, and
 * freed memory may not be touched either (a third of all, taken at random). So a read or write past the end, or after free, ends the process.
 *
 * Allocations come from one reserved range, one after the other, and are never reused; when the range is used up, or an
 * allocation is large, the C library's own malloc takes over. Up to 15 bytes behind the end belong to the allocation,
 * because of its alignment: they hold a pattern that is checked when it is freed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static const size_t RANGE = (size_t)1 << 38, LARGEST = (size_t)1 << 26, PAGE = 4096;
static const unsigned char PATTERN = 0xA5;
static char *begin, *end;
static uintptr_t next;
static long live, total;
static int on;
static unsigned tick;

/* In the page before each allocation. */
typedef struct { size_t size, pages; char *start; } header;

void guard_set(int value) {
    if (!begin) {
        char *range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) return;
        next = (uintptr_t)range;
        end = range + RANGE;
        begin = range;
    }
    on = value;
}

long guard_count(void) { return total; }

static int is_guarded(void *p) { return begin && (char *)p >= begin && (char *)p < end; }

static header *header_of(void *p) { return (header *)(((uintptr_t)p & ~(PAGE - 1)) - PAGE); }

static void *guarded(size_t size, size_t alignment) {
    size_t room = (size + alignment - 1) & ~(alignment - 1);
    if (!room) room = alignment;
    size_t pages = (room + PAGE - 1) / PAGE;
    /* A third of them, at random: to protect pages costs much more than to allocate. */
    if ((__sync_fetch_and_add(&tick, 1) * 2654435761u >> 16) % 3) return NULL;
    /* The linux kernel allows some 65,000 mappings; each live allocation takes two. */
    if (room > LARGEST || alignment > PAGE || __sync_add_and_fetch(&live, 1) > 25000) goto none;
    char *start = (char *)__sync_fetch_and_add(&next, (pages + 2) * PAGE);
    if (start + (pages + 2) * PAGE > end || mprotect(start, (pages + 1) * PAGE, PROT_READ | PROT_WRITE)) goto none;
    char *p = start + (pages + 1) * PAGE - room;
    header *h = header_of(p);
    /* A pointer may lie in any page of its allocation: the header stands before the page that it lies in. */
    h->size = size; h->pages = pages; h->start = start;
    memset(p + size, PATTERN, room - size);
    __sync_add_and_fetch(&total, 1);
    return p;
none:
    __sync_sub_and_fetch(&live, 1);
    return NULL;
}

void free(void *p) {
    if (!is_guarded(p)) { __libc_free(p); return; }
    header *h = header_of(p);
    char *start = h->start, *stop = start + (h->pages + 1) * PAGE;
    size_t pages = h->pages;
    for (char *at = (char *)p + h->size; at < stop; at++)
        if (*(unsigned char *)at != PATTERN) abort();
    madvise(start, (pages + 1) * PAGE, MADV_DONTNEED);
    mprotect(start, (pages + 1) * PAGE, PROT_NONE);
    __sync_sub_and_fetch(&live, 1);
}

void *malloc(size_t size) {
    void *p = on ? guarded(size, 16) : NULL;
    return p ? p : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) { errno = ENOMEM; return NULL; }
    void *p = malloc(count * size);
    return p ? memset(p, 0, count * size) : NULL;
}

void *realloc(void *p, size_t size) {
    if (!p) return malloc(size);
    if (!is_guarded(p)) return __libc_realloc(p, size);
    void *moved = malloc(size);
    if (!moved) return NULL;
    size_t old = header_of(p)->size;
    memcpy(moved, p, old < size ? old : size);
    free(p);
    return moved;
}

void *memalign(size_t alignment, size_t size) {
    void *p = on ? guarded(size, alignment < 16 ? 16 : alignment) : NULL;
    return p ? p : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *p = memalign(alignment, size);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
