import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;

/** What the AdminClient can from 2.1 on: more partitions, fewer records, groups and their offsets. */
final class Administering {
    static void into(Map<String, Driver.Feature> features) {
        features.put("admin-create", Administering::create);
        features.put("admin-delete-records", Administering::deleteRecords);
        features.put("admin-groups", Administering::groups);
        features.put("admin-delete-group", Administering::deleteGroup);
        features.put("admin-offsets", Administering::offsets);
    }

    static Map<String, Object> create(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            NewTopic kept = new NewTopic(cell.topic + "-made", 2, Version.REPLICATION)
                    .configs(Collections.singletonMap("retention.ms", "3600000"));
            NewTopic gone = new NewTopic(cell.topic + "-gone", 1, Version.REPLICATION);
            admin.createTopics(Arrays.asList(kept, gone)).all().get();
            admin.createPartitions(Collections.singletonMap(kept.name(), NewPartitions.increaseTo(3))).all().get();
            admin.deleteTopics(Arrays.asList(gone.name())).all().get();
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> deleteRecords(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            admin.deleteRecords(Collections.singletonMap(cell.partition(0), RecordsToDelete.beforeOffset(4))).all().get();
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> groups(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            Set<String> names = new TreeSet<>();
            for (ConsumerGroupListing each : admin.listConsumerGroups().all().get()) names.add(each.groupId());
            Cell.expect(names.contains(cell.group()), "the group is not listed");
            List<String> asked = Arrays.asList(cell.group());
            String state = admin.describeConsumerGroups(asked).all().get().get(cell.group()).state().toString();
            Cell.expectEqual("Empty", state, "the group's state");
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> deleteGroup(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            admin.deleteConsumerGroups(Arrays.asList(cell.group())).all().get();
        }
        return Collections.emptyMap();
    }

    static Map<String, Object> offsets(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            OffsetAndMetadata committed =
                    admin.listConsumerGroupOffsets(cell.group()).partitionsToOffsetAndMetadata().get().get(cell.partition(0));
            Cell.expectEqual(7L, committed.offset(), "the committed offset");
        }
        return Collections.emptyMap();
    }
}
