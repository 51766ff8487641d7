import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Commit, abort, fencing, offsets in the transaction, and reading only what is committed. */
final class Transactions {
    static void into(Map<String, Driver.Feature> features) {
        features.put("txn-commit", Transactions::commit);
        features.put("txn-abort", Transactions::abort);
        features.put("txn-fencing", Transactions::fencing);
        features.put("txn-offsets", Transactions::offsets);
        features.put("read-committed", Transactions::readCommitted);
    }

    static KafkaProducer<String, String> begun(Cell cell) {
        KafkaProducer<String, String> producer = cell.producer("transactional.id", cell.topic);
        producer.initTransactions();
        producer.beginTransaction();
        return producer;
    }

    static Map<String, Object> commit(Cell cell) {
        try (KafkaProducer<String, String> producer = begun(cell)) {
            for (int partition = 0; partition < 2; partition++) cell.send(producer, partition, "kept", 5);
            producer.commitTransaction();
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> abort(Cell cell) {
        try (KafkaProducer<String, String> producer = begun(cell)) {
            cell.send(producer, 0, "dropped", 5);
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            cell.send(producer, 0, "kept", 5);
            producer.commitTransaction();
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> fencing(Cell cell) {
        String refused = "nothing";
        try (KafkaProducer<String, String> old = begun(cell)) {
            cell.send(old, 0, "dropped", 5);
            old.flush();
            try (KafkaProducer<String, String> current = begun(cell)) {
                cell.send(current, 0, "kept", 5);
                current.commitTransaction();
            }
            try {
                old.commitTransaction();
            } catch (ProducerFencedException error) {
                refused = "fenced";
            }
        }
        Cell.expectEqual("fenced", refused, "the old producer's commit");
        return Collections.emptyMap();
    }

    static Map<String, Object> offsets(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.subscribed("isolation.level", "read_committed");
                KafkaProducer<String, String> producer = begun(cell)) {
            Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
            for (ConsumerRecord<String, String> record : cell.read(consumer, 10)) {
                producer.send(new ProducerRecord<>(cell.topic + "-out", 0, null, "seen-" + record.value()));
                read.put(cell.partition(0), new OffsetAndMetadata(record.offset() + 1));
            }
            Version.sendOffsets(producer, read, consumer, cell.group());
            producer.commitTransaction();
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> readCommitted(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.assigned(1, "isolation.level", "read_committed")) {
            List<String> values = Cell.values(cell.read(consumer, 10));
            for (String value : values) Cell.expect(value.startsWith("kept"), "an aborted record was shown: " + value);
            Cell.expectEqual(10, values.size(), "records of committed transactions");
        }
        try (KafkaConsumer<String, String> consumer = cell.assigned(1)) {
            Cell.expectEqual(15, cell.read(consumer, 15).size(), "records of all transactions");
        }
        return Collections.emptyMap();
    }
}
