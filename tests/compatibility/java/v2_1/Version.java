import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** kafka-clients 2.1.0, the oldest that Kafka 4 promises to serve. */
final class Version {
    /** It must say a number: brokers had no default for it. */
    static final short REPLICATION = 1;

    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer, long ms) {
        return consumer.poll(Duration.ofMillis(ms));
    }

    static void sendOffsets(KafkaProducer<String, String> producer, Map<TopicPartition, OffsetAndMetadata> offsets,
            KafkaConsumer<String, String> consumer, String group) {
        producer.sendOffsetsToTransaction(offsets, group);
    }

    static TopicDescription described(AdminClient admin, String topic) throws Exception {
        return admin.describeTopics(Arrays.asList(topic)).all().get().get(topic);
    }

    static void setConfig(AdminClient admin, ConfigResource resource, String name, String value) throws Exception {
        Config wanted = new Config(Arrays.asList(new ConfigEntry(name, value)));
        admin.alterConfigs(Collections.singletonMap(resource, wanted)).all().get();
    }

    static void into(Map<String, Driver.Feature> features) {
        Administering.into(features);
    }
}
