import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.variant.Variant;
import org.apache.parquet.variant.VariantValueWriter;

/**
 * parquet-java reads the Variant column "v" of a file, prints each value as base64 of metadata and value, and writes
 * the values with the shredding schema of the file: ParquetJava IN OUT.
 */
public class ParquetJava {
  static class Support extends WriteSupport<Variant> {
    final MessageType schema;
    RecordConsumer consumer;

    Support(MessageType schema) {
      this.schema = schema;
    }

    @Override
    public WriteContext init(Configuration configuration) {
      return new WriteContext(schema, new HashMap<>());
    }

    @Override
    public void prepareForWrite(RecordConsumer recordConsumer) {
      consumer = recordConsumer;
    }

    @Override
    public void write(Variant variant) {
      consumer.startMessage();
      if (variant != null) {
        GroupType group = schema.getType("v").asGroupType();
        consumer.startField("v", 0);
        VariantValueWriter.write(consumer, group, variant);
        consumer.endField("v", 0);
      }
      consumer.endMessage();
    }
  }

  static class Builder extends ParquetWriter.Builder<Variant, Builder> {
    final MessageType schema;

    Builder(HadoopOutputFile file, MessageType schema) {
      super(file);
      this.schema = schema;
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected WriteSupport<Variant> getWriteSupport(Configuration configuration) {
      return new Support(schema);
    }
  }

  static String text(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return Base64.getEncoder().encodeToString(bytes);
  }

  public static void main(String[] arguments) throws IOException {
    Configuration configuration = new Configuration();
    HadoopInputFile input = HadoopInputFile.fromPath(new Path(arguments[0]), configuration);
    MessageType schema;
    try (ParquetFileReader file = ParquetFileReader.open(input)) {
      schema = file.getFooter().getFileMetaData().getSchema();
    }
    List<Variant> variants = new ArrayList<>();
    try (ParquetReader<GenericRecord> reader = AvroParquetReader.<GenericRecord>builder(input).build()) {
      for (GenericRecord row = reader.read(); row != null; row = reader.read()) {
        GenericRecord v = (GenericRecord) row.get("v");
        Variant variant = v == null ? null : new Variant((ByteBuffer) v.get("value"), (ByteBuffer) v.get("metadata"));
        System.out.println(
            variant == null ? "null" : text(variant.getMetadataBuffer()) + "\t" + text(variant.getValueBuffer()));
        variants.add(variant);
      }
    }
    HadoopOutputFile output = HadoopOutputFile.fromPath(new Path(arguments[1]), configuration);
    try (ParquetWriter<Variant> writer = new Builder(output, schema).build()) {
      for (Variant variant : variants) {
        writer.write(variant);
      }
    }
  }
}
