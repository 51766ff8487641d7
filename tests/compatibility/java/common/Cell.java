import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** One feature's own topic and group, and short words for what most features do. */
final class Cell {
    static final long PATIENCE_MS = 40_000;

    final String bootstrap;
    final String topic;

    Cell(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    String group() {
        return topic;
    }

    TopicPartition partition(int index) {
        return new TopicPartition(topic, index);
    }

    Properties settings(String... pairs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) settings.put(pairs[i], pairs[i + 1]);
        return settings;
    }

    KafkaProducer<String, String> producer(String... pairs) {
        return new KafkaProducer<>(settings(pairs), new StringSerializer(), new StringSerializer());
    }

    /** In the cell's group, from the beginning, without auto commit, unless the pairs say otherwise. */
    KafkaConsumer<String, String> consumer(String... pairs) {
        Properties settings = settings("group.id", group(), "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        settings.putAll(settings(pairs));
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    KafkaConsumer<String, String> assigned(int partitions, String... pairs) {
        KafkaConsumer<String, String> consumer = consumer(pairs);
        List<TopicPartition> all = new ArrayList<>();
        for (int i = 0; i < partitions; i++) all.add(partition(i));
        consumer.assign(all);
        return consumer;
    }

    KafkaConsumer<String, String> subscribed(String... pairs) {
        KafkaConsumer<String, String> consumer = consumer(pairs);
        consumer.subscribe(Arrays.asList(topic));
        return consumer;
    }

    ProducerRecord<String, String> record(int partition, String value) {
        return new ProducerRecord<>(topic, partition, null, value);
    }

    void send(KafkaProducer<String, String> producer, int partition, String name, int count) {
        for (int i = 0; i < count; i++) producer.send(record(partition, name + "-" + i));
    }

    /** At least `count` records, or an error that says how many came. */
    List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> got = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (got.size() < count) {
            if (System.currentTimeMillis() > deadline) throw new AssertionError(got.size() + " of " + count + " records came");
            Version.poll(consumer, 200).forEach(got::add);
        }
        return got;
    }

    static void await(String what, Callable<Boolean> holds) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!holds.call()) {
            if (System.currentTimeMillis() > deadline) throw new AssertionError("did not happen: " + what);
            Thread.sleep(20);
        }
    }

    static void expect(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static <T> void expectEqual(T wanted, T got, String what) {
        expect(wanted.equals(got), what + ": " + got + ", not " + wanted);
    }

    static List<String> values(List<ConsumerRecord<String, String>> records) {
        List<String> values = new ArrayList<>();
        for (ConsumerRecord<String, String> record : records) values.add(record.value());
        return values;
    }

    static List<Long> offsets(List<ConsumerRecord<String, String>> records) {
        List<Long> offsets = new ArrayList<>();
        for (ConsumerRecord<String, String> record : records) offsets.add(record.offset());
        return offsets;
    }

    static Map<String, Object> said(String name, Object value) {
        return java.util.Collections.singletonMap(name, value);
    }
}
