import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** What clients from 3.1 on call otherwise than older ones, and what only their Admin can. */
final class Version {
    /** As many copies as the broker makes by default. */
    static final short REPLICATION = -1;

    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer, long ms) {
        return consumer.poll(Duration.ofMillis(ms));
    }

    static void sendOffsets(KafkaProducer<String, String> producer, Map<TopicPartition, OffsetAndMetadata> offsets,
            KafkaConsumer<String, String> consumer, String group) {
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
    }

    static TopicDescription described(Admin admin, String topic) throws Exception {
        return admin.describeTopics(Arrays.asList(topic)).allTopicNames().get().get(topic);
    }

    static void setConfig(Admin admin, ConfigResource resource, String name, String value) throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Collections.singletonMap(resource, Arrays.asList(change))).all().get();
    }

    static void into(Map<String, Driver.Feature> features) {
        Administering.into(features);
        features.put("admin-offsets", Version::offsets);
        features.put("admin-alter-offsets", Version::alterOffsets);
    }

    static Map<String, Object> offsets(Cell cell) throws Exception {
        try (Admin admin = Admin.create(cell.settings())) {
            Map<TopicPartition, OffsetSpec> asked = Collections.singletonMap(cell.partition(0), OffsetSpec.latest());
            Cell.expectEqual(10L, admin.listOffsets(asked).all().get().get(cell.partition(0)).offset(), "the end offset");
        }
        return Administering.offsets(cell);
    }

    static Map<String, Object> alterOffsets(Cell cell) throws Exception {
        try (Admin admin = Admin.create(cell.settings())) {
            OffsetAndMetadata wanted = new OffsetAndMetadata(3, Optional.empty(), "moved");
            admin.alterConsumerGroupOffsets(cell.group(), Collections.singletonMap(cell.partition(0), wanted)).all().get();
        }
        return Collections.emptyMap();
    }
}
