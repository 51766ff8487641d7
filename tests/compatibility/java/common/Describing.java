import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.ConfigResource;

/** Topics and their configs by the AdminClient, as every version of it can. */
final class Describing {
    static void into(Map<String, Driver.Feature> features) {
        features.put("admin-describe", Describing::describe);
        features.put("admin-configs", Describing::configs);
    }

    static Map<String, Object> describe(Cell cell) throws Exception {
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            TopicDescription topic = Version.described(admin, cell.topic);
            Cell.expectEqual(2, topic.partitions().size(), "partitions");
            Cell.expect(topic.partitions().get(0).leader() != null, "there is no leader");
            Cell.expect(admin.listTopics().names().get().contains(cell.topic), "the topic is not listed");
            Cell.expect(admin.describeCluster().nodes().get().size() > 0, "there are no nodes");
            return Cell.said("cluster", admin.describeCluster().clusterId().get());
        }
    }

    static Map<String, Object> configs(Cell cell) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, cell.topic);
        try (AdminClient admin = AdminClient.create(cell.settings())) {
            Version.setConfig(admin, resource, "retention.ms", "1234567");
            Cell.await("the new value, which any broker may be asked for", () ->
                    "1234567".equals(admin.describeConfigs(Arrays.asList(resource)).all().get().get(resource).get("retention.ms").value()));
        }
        return Collections.emptyMap();
    }
}
