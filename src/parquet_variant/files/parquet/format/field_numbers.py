"""Field numbers of structs in ``parquet.thrift`` that are read or changed individually.

Owns the numbers. Leaves structs that are written completely to `pages.file_metadata`.
"""

# FileMetaData
SCHEMA, ROW_GROUPS, KEY_VALUES, ENCRYPTION = 2, 4, 5, 8
# SchemaElement
PHYSICAL_TYPE, CONVERTED_TYPE, SCALE, PRECISION, LOGICAL_TYPE = 1, 6, 7, 8, 10
# RowGroup
COLUMNS, NUM_ROWS = 1, 3
# ColumnChunk
FILE_PATH, METADATA, OFFSET_INDEX, OFFSET_INDEX_SIZE, COLUMN_INDEX, COLUMN_INDEX_SIZE = 1, 3, 4, 5, 6, 7
# ColumnMetaData
PATH, CODEC, PLAIN_SIZE, SIZE, DATA_AT, DICTIONARY_AT = 3, 4, 6, 7, 9, 11
STATISTICS, ENCODING_STATS, BLOOM_AT, BLOOM_SIZE = 12, 13, 14, 15
# PageEncodingStats
PAGE_TYPE, PAGE_ENCODING = 1, 2
# OffsetIndex and PageLocation
LOCATIONS, TEXT_BYTES = 1, 2
PAGE_AT, PAGE_SIZE, FIRST_ROW = 1, 2, 3
# ColumnIndex
NULL_PAGES, LOW_VALUES, HIGH_VALUES, NULL_COUNTS, REPETITION_COUNTS, DEFINITION_COUNTS = 1, 2, 3, 5, 6, 7
# PageType
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
