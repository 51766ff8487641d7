import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** One reader: pause, seek, commits of each kind, a regex, offsets kept elsewhere, interceptors. */
final class Reading {
    static void into(Map<String, Driver.Feature> features) {
        features.put("pause-resume", Reading::pauseResume);
        features.put("seek", Reading::seek);
        features.put("outside-store", Reading::outsideStore);
        features.put("regex", Reading::regex);
        features.put("commit-auto", Reading::commitAuto);
        features.put("commit-sync", Reading::commitSync);
        features.put("commit-async", Reading::commitAsync);
        features.put("interceptors", Reading::interceptors);
    }

    static Map<String, Object> pauseResume(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.assigned(2)) {
            consumer.pause(Arrays.asList(cell.partition(1)));
            for (ConsumerRecord<String, String> record : cell.read(consumer, 5))
                Cell.expectEqual(0, record.partition(), "while 1 was paused, a record's partition");
            Cell.expect(Version.poll(consumer, 300).isEmpty(), "a paused partition was read");
            consumer.resume(Arrays.asList(cell.partition(1)));
            for (ConsumerRecord<String, String> record : cell.read(consumer, 5))
                Cell.expectEqual(1, record.partition(), "after it was resumed, a record's partition");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> seek(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.assigned(1)) {
            consumer.seek(cell.partition(0), 7);
            Cell.expectEqual(Arrays.asList(7L, 8L, 9L), Cell.offsets(cell.read(consumer, 3)), "after seek(7)");
            consumer.seekToBeginning(Arrays.asList(cell.partition(0)));
            Cell.expectEqual(0L, cell.read(consumer, 10).get(0).offset(), "after seekToBeginning");
            consumer.seekToEnd(Arrays.asList(cell.partition(0)));
            Cell.expectEqual(10L, consumer.position(cell.partition(0)), "after seekToEnd");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> outsideStore(Cell cell) throws Exception {
        Path store = Files.createTempFile("offset", null);
        try (KafkaConsumer<String, String> consumer = cell.subscribed("max.poll.records", "1")) {
            for (ConsumerRecord<String, String> record : cell.read(consumer, 5))
                Files.write(store, Long.toString(record.offset() + 1).getBytes());
        }
        try (KafkaConsumer<String, String> consumer = cell.consumer()) {
            long stored = Long.parseLong(new String(Files.readAllBytes(store)));
            consumer.subscribe(Arrays.asList(cell.topic), new Listener() {
                @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    for (TopicPartition each : partitions) consumer.seek(each, stored);
                }
            });
            Cell.expectEqual(stored, cell.read(consumer, 5).get(0).offset(), "the first offset after the restart");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> regex(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.consumer()) {
            consumer.subscribe(Pattern.compile(Pattern.quote(cell.topic) + "-[ab]"), new Listener());
            TreeSet<String> topics = new TreeSet<>();
            for (ConsumerRecord<String, String> record : cell.read(consumer, 10)) topics.add(record.topic());
            Cell.expectEqual(Arrays.asList(cell.topic + "-a", cell.topic + "-b").toString(), topics.toString(), "topics read");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> commitAuto(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.subscribed("enable.auto.commit", "true", "auto.commit.interval.ms", "100")) {
            cell.read(consumer, 10);
            Version.poll(consumer, 300);
        }
        return Collections.emptyMap();
    }

    static Map<TopicPartition, OffsetAndMetadata> at(Cell cell, long offset) {
        return Collections.singletonMap(cell.partition(0), new OffsetAndMetadata(offset, "note"));
    }

    static Map<String, Object> commitSync(Cell cell) {
        try (KafkaConsumer<String, String> consumer = cell.subscribed()) {
            cell.read(consumer, 10);
            consumer.commitSync();
            consumer.commitSync(at(cell, 4));
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> commitAsync(Cell cell) throws Exception {
        AtomicInteger answered = new AtomicInteger();
        try (KafkaConsumer<String, String> consumer = cell.subscribed()) {
            cell.read(consumer, 10);
            consumer.commitAsync(at(cell, 6), (offsets, error) -> answered.addAndGet(error == null ? 1 : 100));
            Cell.await("the callback", () -> {
                Version.poll(consumer, 50);
                return answered.get() > 0;
            });
        }
        Cell.expectEqual(1, answered.get(), "callbacks");
        return Collections.emptyMap();
    }

    static Map<String, Object> interceptors(Cell cell) {
        try (KafkaProducer<String, String> producer = cell.producer("interceptor.classes", Marking.class.getName())) {
            cell.send(producer, 0, "value", 5);
        }
        try (KafkaConsumer<String, String> consumer = cell.subscribed("interceptor.classes", Counting.class.getName())) {
            cell.read(consumer, 5);
            consumer.commitSync();
        }
        Cell.expectEqual(5, Marking.acked.get(), "onAcknowledgement");
        Cell.expectEqual(5, Counting.consumed.get(), "records in onConsume");
        Cell.expectEqual(1, Counting.committed.get(), "onCommit");
        return Collections.emptyMap();
    }

    public static final class Marking implements ProducerInterceptor<String, String> {
        static final AtomicInteger acked = new AtomicInteger();

        @Override public ProducerRecord<String, String> onSend(ProducerRecord<String, String> record) {
            return new ProducerRecord<>(record.topic(), record.partition(), record.key(), record.value() + "-marked");
        }

        @Override public void onAcknowledgement(RecordMetadata stored, Exception error) {
            if (error == null) acked.incrementAndGet();
        }

        @Override public void close() {}

        @Override public void configure(Map<String, ?> settings) {}
    }

    public static final class Counting implements ConsumerInterceptor<String, String> {
        static final AtomicInteger consumed = new AtomicInteger();
        static final AtomicInteger committed = new AtomicInteger();

        @Override public ConsumerRecords<String, String> onConsume(ConsumerRecords<String, String> records) {
            consumed.addAndGet(records.count());
            return records;
        }

        @Override public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            committed.incrementAndGet();
        }

        @Override public void close() {}

        @Override public void configure(Map<String, ?> settings) {}
    }
}
