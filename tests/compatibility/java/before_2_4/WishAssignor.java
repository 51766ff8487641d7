import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;

/** An assignor of ours: to each member what it wishes for. The interface was internal before 2.4, and used all the same. */
public final class WishAssignor implements PartitionAssignor, Configurable {
    private String wish;

    @Override public void configure(Map<String, ?> settings) {
        wish = (String) settings.get(Wish.SETTING);
    }

    @Override public String name() {
        return "wish";
    }

    @Override public Subscription subscription(Set<String> topics) {
        return new Subscription(new ArrayList<>(topics), Wish.bytes(wish));
    }

    @Override public Map<String, Assignment> assign(Cluster cluster, Map<String, Subscription> group) {
        Map<String, Assignment> given = new HashMap<>();
        group.forEach((member, subscription) -> given.put(member, new Assignment(
                Wish.partitions(subscription.topics().get(0), subscription.userData()), Wish.answer(subscription.userData()))));
        return given;
    }

    @Override public void onAssignment(Assignment assignment) {
        Wish.hear(assignment.userData());
    }
}
