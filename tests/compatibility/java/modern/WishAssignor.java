import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;

/** An assignor of ours: to each member what it wishes for. */
public final class WishAssignor implements ConsumerPartitionAssignor, Configurable {
    private String wish;

    @Override public void configure(Map<String, ?> settings) {
        wish = (String) settings.get(Wish.SETTING);
    }

    @Override public String name() {
        return "wish";
    }

    @Override public ByteBuffer subscriptionUserData(Set<String> topics) {
        return Wish.bytes(wish);
    }

    @Override public GroupAssignment assign(Cluster cluster, GroupSubscription group) {
        Map<String, Assignment> given = new HashMap<>();
        group.groupSubscription().forEach((member, subscription) -> given.put(member, new Assignment(
                Wish.partitions(subscription.topics().get(0), subscription.userData()), Wish.answer(subscription.userData()))));
        return new GroupAssignment(given);
    }

    @Override public void onAssignment(Assignment assignment, ConsumerGroupMetadata group) {
        Wish.hear(assignment.userData());
    }
}
