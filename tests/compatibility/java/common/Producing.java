import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

/** acks, the three ways to send, codecs, headers, idempotence. */
final class Producing {
    static void into(Map<String, Driver.Feature> features) {
        for (String acks : new String[] {"0", "1", "all"}) features.put("acks-" + acks, cell -> acks(cell, acks));
        for (String codec : new String[] {"none", "gzip", "snappy", "lz4", "zstd"})
            features.put("codec-" + codec, cell -> codec(cell, codec));
        features.put("send-forget", Producing::forget);
        features.put("send-sync", cell -> acks(cell, "all"));
        features.put("send-callback", Producing::callback);
        features.put("headers", Producing::headers);
        features.put("idempotent", Producing::idempotent);
    }

    static Map<String, Object> acks(Cell cell, String acks) throws Exception {
        List<Long> offsets = new ArrayList<>();
        try (KafkaProducer<String, String> producer = cell.producer("acks", acks)) {
            for (int i = 0; i < 10; i++) offsets.add(producer.send(cell.record(0, "value-" + i)).get().offset());
        }
        return Cell.said("offsets", offsets);
    }

    static Map<String, Object> forget(Cell cell) {
        try (KafkaProducer<String, String> producer = cell.producer()) {
            cell.send(producer, 0, "value", 10);
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> callback(Cell cell) {
        AtomicInteger acked = new AtomicInteger();
        try (KafkaProducer<String, String> producer = cell.producer()) {
            for (int i = 0; i < 10; i++)
                producer.send(cell.record(0, "value-" + i), (stored, error) -> acked.addAndGet(error == null ? 1 : 0));
        }
        Cell.expectEqual(10, acked.get(), "callbacks without an error");
        return Collections.emptyMap();
    }

    static Map<String, Object> codec(Cell cell, String codec) {
        try (KafkaProducer<String, String> producer = cell.producer("compression.type", codec, "linger.ms", "50")) {
            cell.send(producer, 0, "value", 50);
        }
        try (KafkaConsumer<String, String> consumer = cell.assigned(1)) {
            List<String> values = Cell.values(cell.read(consumer, 50));
            for (int i = 0; i < 50; i++) Cell.expectEqual("value-" + i, values.get(i), "what was read");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> headers(Cell cell) {
        try (KafkaProducer<String, String> producer = cell.producer()) {
            ProducerRecord<String, String> record = cell.record(0, "value-0");
            for (String value : new String[] {"1", "2"}) record.headers().add("trace", value.getBytes(StandardCharsets.UTF_8));
            record.headers().add("empty", new byte[0]);
            producer.send(record);
        }
        List<String> read = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = cell.assigned(1)) {
            for (ConsumerRecord<String, String> record : cell.read(consumer, 1))
                for (Header header : record.headers()) read.add(header.key() + "=" + new String(header.value(), StandardCharsets.UTF_8));
        }
        return Cell.said("headers", read);
    }

    static Map<String, Object> idempotent(Cell cell) {
        try (KafkaProducer<String, String> producer =
                cell.producer("enable.idempotence", "true", "acks", "all", "retries", "10", "max.in.flight.requests.per.connection", "1")) {
            for (int i = 0; i < 20; i++) {
                producer.send(cell.record(0, "value-" + i));
                if (i == 9) producer.flush();
            }
        }
        return Collections.emptyMap();
    }
}
