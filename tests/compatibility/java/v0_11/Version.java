import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** kafka-clients 0.11.0.3, the first line of clients that writes record batches of version 2. */
final class Version {
    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer, long ms) {
        return consumer.poll(ms);
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
        features.put("admin-create", Version::create);
    }

    static Map<String, Object> create(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            NewTopic kept = new NewTopic(cell.topic + "-made", 3, (short) 1).configs(Collections.singletonMap("retention.ms", "3600000"));
            NewTopic gone = new NewTopic(cell.topic + "-gone", 1, (short) 1);
            admin.createTopics(Arrays.asList(kept, gone)).all().get();
            admin.deleteTopics(Arrays.asList(gone.name())).all().get();
        }
        return Collections.emptyMap();
    }
}
