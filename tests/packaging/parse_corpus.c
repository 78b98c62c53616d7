/* Parses the lines of a file with the kernel that is linked in, and prints a hash of the nodes: see test_aarch64.py. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t pv_tapes_parse_json_parse_rows(int64_t *words);

int main(int count, char **names) {
    FILE *file = fopen(names[1], "rb");
    if (count != 2 || !file) return 2;
    fseek(file, 0, SEEK_END);
    int64_t size = ftell(file), rows = 0, start = 0;
    rewind(file);
    char *text = malloc(size + 64);
    if (fread(text, 1, size, file) != (size_t)size) return 2;
    memset(text + size, 0, 64);
    int64_t *starts = calloc(size + 1, 8), *stops = calloc(size + 1, 8);
    for (int64_t i = 0; i < size; i++)
        if (text[i] == '\n') {
            starts[rows] = start;
            stops[rows++] = i;
            start = i + 1;
        }
    int64_t room = size + 8;
    int64_t *nodes = calloc(room * 4, 8), *row_start = calloc(rows + 1, 8);
    int64_t *doubles = calloc(room, 8);
    int32_t *status = calloc(rows + 1, 4);
    char *scratch = malloc(size + 64);
    int64_t words[] = {
        (int64_t)text, (int64_t)starts, rows, (int64_t)stops, rows, (int64_t)scratch, 0, (int64_t)scratch,
        (int64_t)nodes, room, 4, (int64_t)row_start, rows + 1, (int64_t)status, rows,
        (int64_t)doubles, room, 0, 0, 0, 1000, 128 << 20, 1, 7,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    };
    if (pv_tapes_parse_json_parse_rows(words)) return 3;
    int64_t *result = words + 24;
    uint64_t hash = 1469598103934665603u;
    for (int64_t n = 0; n < result[1]; n++)
        for (int column = 0; column < 4; column++) {
            int64_t kind = nodes[4 * n] & 0xFF;
            /* Addresses of strings and of numbers whose text is still to be read differ from process to process. */
            if (column == 1 && (kind == 16 || kind == 7)) continue;
            hash = (hash ^ (uint64_t)nodes[4 * n + column]) * 1099511628211u;
        }
    printf("%lld rows, %lld nodes, %lld keys, %016llx\n", (long long)result[0], (long long)result[1],
           (long long)result[5], (unsigned long long)hash);
    return 0;
}
